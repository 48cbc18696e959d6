package expr

import (
	"testing"

	"github.com/google/cel-go/common/types"
)

// TestNamesOfOtherFields: a value has no field of another name.
func TestNamesOfOtherFields(t *testing.T) {
	age := 3
	a := activation[int]{map[string]*Field[int]{"age": {Number: func(v *int) float64 { return float64(*v) }}}, &age}
	if v, ok := a.ResolveName("age"); !ok || v != types.Double(3) {
		t.Errorf("age: %v, %t", v, ok)
	}
	if v, ok := a.ResolveName("ages"); ok || v != nil {
		t.Errorf("ages: %v, %t", v, ok)
	}
}
