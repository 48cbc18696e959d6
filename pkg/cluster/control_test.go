package cluster

import (
	"reflect"
	"testing"

	"blis/pkg/policy"
)

// TestSnapshotsHaveTheFields: files call each field as policies do, and set it.
func TestSnapshotsHaveTheFields(t *testing.T) {
	var s Snapshots
	byName := map[string]*Refresh{}
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		byName[v.Type().Field(i).Tag.Get("yaml")] = v.Field(i).Addr().Interface().(*Refresh)
	}
	if len(byName) != int(policy.Fields)+1 {
		t.Errorf("%d fields and the default, and policies know %d", len(byName), policy.Fields)
	}
	for f, refresh := range s.Fields() {
		if name := policy.FieldNames[f]; byName[name] != refresh {
			t.Errorf("field %d is called %s, which is another field", f, name)
		}
	}
}
