package cluster

import (
	"reflect"
	"testing"

	"blis/pkg/policy"
)

// TestSnapshotFieldsMatchPolicies: files and policies use the same field names.
func TestSnapshotFieldsMatchPolicies(t *testing.T) {
	var s Snapshots
	byName := map[string]*Refresh{}
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		byName[v.Type().Field(i).Tag.Get("yaml")] = v.Field(i).Addr().Interface().(*Refresh)
	}
	if len(byName) != int(policy.Fields)+1 {
		t.Errorf("%d fields including the default, and policies know %d", len(byName), policy.Fields)
	}
	for f, refresh := range s.Fields() {
		if name := policy.FieldNames[f]; byName[name] != refresh {
			t.Errorf("field %d is named %s, which is a different field", f, name)
		}
	}
}
