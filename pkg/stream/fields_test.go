package stream

import (
	"reflect"
	"strings"
	"testing"
)

// The generated descriptions of objects agree with what encoding/json makes of the Go
// types.
func TestObjectsMatchTypes(t *testing.T) {
	for _, o := range Objects {
		if o.Type.NumField() != len(o.Fields) {
			t.Errorf("%s has %d fields, its table %d", o.Type, o.Type.NumField(), len(o.Fields))
			continue
		}
		for i, f := range o.Fields {
			tag := strings.Split(o.Type.Field(i).Tag.Get("json"), ",")
			if tag[0] != f.Name {
				t.Errorf("field %d of %s is %s, in the table %s", i, o.Type, tag[0], f.Name)
			}
			if required := len(tag) == 1; required != f.Required {
				t.Errorf("%s.%s: always written %v, required %v", o.Type, f.Name, required, f.Required)
			}
			if !strings.HasSuffix(f.Doc, ".") {
				t.Errorf("%s.%s: %q is not a sentence", o.Type, f.Name, f.Doc)
			}
			typ := o.Type.Field(i).Type
			if typ == reflect.TypeFor[[]int64]() {
				typ = typ.Elem()
			}
			if kind := typ.Kind(); (kind == reflect.Int64 || kind == reflect.Int32) != (f.Max > 0) {
				t.Errorf("%s.%s is a %s and has the bound %d", o.Type, f.Name, kind, f.Max)
			}
		}
	}
}
