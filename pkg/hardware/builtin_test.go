package hardware

import (
	"flag"
	"fmt"
	"go/format"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite builtin_gen.go from the files in hardware/")

// TestBuiltInIsCurrent: the generated catalog is that of the files in hardware/, which pass all
// checks of a user's files.
func TestBuiltInIsCurrent(t *testing.T) {
	read := &Catalog{sources: map[string]string{}}
	if _, err := read.add([]string{"../../hardware"}); err != nil {
		t.Fatal(err)
	}
	text := "// Code generated from hardware/*.yaml by go generate ./pkg/hardware. DO NOT EDIT.\n\n" +
		"package hardware\n\n" +
		"import \"blis/pkg/latency\"\n\n" +
		"// builtIn returns the catalog of the files in hardware/.\n" +
		"func builtIn() *Catalog {\n\treturn " + literal(reflect.ValueOf(read)) + "\n}\n"
	want, err := format.Source([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const name = "builtin_gen.go"
	if *update {
		if err := os.WriteFile(name, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Errorf("%s is not current: run go generate ./pkg/hardware", name)
	}
	if !*update && !reflect.DeepEqual(builtIn(), read) {
		t.Error("the generated catalog differs from the files")
	}
}

// literal is a value as a Go expression of this package; fields that are zero are left out.
func literal(v reflect.Value) string {
	typeName := strings.ReplaceAll(v.Type().String(), "hardware.", "")
	var b strings.Builder
	switch v.Kind() {
	case reflect.Pointer:
		if v.Elem().Kind() == reflect.Struct {
			return "&" + literal(v.Elem())
		}
		return "new(" + literal(v.Elem()) + ")"
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				fmt.Fprintf(&b, "\n%s: %s,", v.Type().Field(i).Name, literal(f))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Float64 {
			return typeName + "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") + "}"
		}
		for i := range v.Len() {
			fmt.Fprintf(&b, "\n%s,", literal(v.Index(i)))
		}
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			fmt.Fprintf(&b, "\n%q: %s,", key, literal(v.MapIndex(key)))
		}
	case reflect.String:
		return fmt.Sprintf("%q", v)
	default:
		return fmt.Sprint(v)
	}
	if b.Len() == 0 {
		return typeName + "{}"
	}
	return typeName + "{" + b.String() + "\n}"
}
