package schemas_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"blis/schemas"

	"github.com/google/jsonschema-go/jsonschema"
)

// A field name has one type in all kinds of records, so that readers that infer columns,
// such as DuckDB, can load a whole stream.
func TestFieldsHaveOneTypeInAllRecords(t *testing.T) {
	kinds := map[string]map[string][]string{} // path, type, kinds of records
	names, err := fs.Glob(schemas.Files, "*"+suffix)
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for _, name := range names {
		text, err := schemas.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		if s.Properties["kind"] != nil {
			records++
			addTypes(kinds, "", &s, strings.TrimSuffix(name, suffix))
		}
	}
	if records < 14 {
		t.Fatalf("only %d schemas of records", records)
	}
	for _, path := range slices.Sorted(maps.Keys(kinds)) {
		if len(kinds[path]) > 1 {
			t.Errorf("%s has several types, by kind of record: %v; rename the field of one kind", path[1:], kinds[path])
		}
	}
}

// addTypes adds the types of all fields of s, an object or list at path.
func addTypes(kinds map[string]map[string][]string, path string, s *jsonschema.Schema, kind string) {
	for name, field := range s.Properties {
		at := path + "." + name
		for _, typ := range append(slices.Clone(field.Types), field.Type) {
			if typ == "integer" {
				typ = "number"
			}
			if typ == "" || typ == "null" {
				continue
			}
			if kinds[at] == nil {
				kinds[at] = map[string][]string{}
			}
			kinds[at][typ] = append(kinds[at][typ], kind)
		}
		addTypes(kinds, at, field, kind)
	}
	if s.Items != nil {
		addTypes(kinds, path+"[]", s.Items, kind)
	}
}
