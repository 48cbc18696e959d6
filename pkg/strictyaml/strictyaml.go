// Package strictyaml reads the files that people write: workload specs, cluster files, policies. It
// accepts YAML and JSON, whatever the file's name, and is strict: an unknown field or a duplicate
// key is an error with its line and the nearest known name.
//
// JSON is parsed as YAML, of which it is a subset. Text that begins with a brace
// need not be valid JSON: comments and trailing commas are allowed.
package strictyaml

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"

	"blis/pkg/limits"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Doc is a parsed file that knows the position of every value. It is not safe for concurrent use.
type Doc struct {
	name string
	// body is the tree of values. Aliases are replaced by the nodes that they refer
	// to, which are shared: changes copy the nodes on their path.
	body ast.Node
	// lines are the lines of the file without line endings.
	lines   [][]rune
	origins origins
}

// Read reads and parses the file called name.
func Read(name string) (*Doc, error) {
	data, err := limits.ReadFile(name, limits.Config)
	if info, _ := os.Stat(name); err != nil && info != nil && info.IsDir() {
		return nil, &Error{File: name, Msg: "is a directory, and must be a file"}
	}
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// Parse parses data. Errors use name as the file name.
func Parse(name string, data []byte) (doc *Doc, err error) {
	defer recoverToError(name, &err)
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, &Error{File: name, Msg: "is not text, and must be YAML or JSON"}
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if err := checkSize(name, text); err != nil {
		return nil, err
	}
	d := &Doc{name: name, lines: splitLines(text), origins: newOrigins()}
	file, err := parser.ParseBytes(tabsToSpaces(text), 0)
	switch {
	case err != nil:
		return nil, d.convertError(err)
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, &Error{File: name, Msg: "is empty"}
	case len(file.Docs) > 1:
		return nil, &Error{File: name, Msg: "contains more than one document; one file, one document"}
	}
	d.body = file.Docs[0].Body
	resolveAliases(&d.body, map[string]ast.Node{})
	return d, nil
}

// tabsToSpaces returns text and, if it is JSON, replaces the tabs between tokens:
// the YAML library miscounts columns after tabs.
func tabsToSpaces(text string) []byte {
	if strings.Contains(text, "\t") && strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text)) {
		text = strings.ReplaceAll(text, "\t", " ") // JSON strings contain no raw tabs
	}
	return []byte(text)
}

// Decode fills v, a pointer to a struct with yaml tags. Fields that the document
// does not set keep their values in v. Numbers become float64 in fields of type
// any and keep their spelling in fields of type string. A value must be decoded into
// the same type every time, because its scalars keep the form that suits the type.
func (d *Doc) Decode(v any) error {
	return d.decode(v, reflect.TypeOf(v), false)
}

// DecodeAt is Decode of the value at path. Without one, v stays as it is.
func (d *Doc) DecodeAt(path string, v any) error {
	part := *d
	if part.body = d.find(path); part.body == nil {
		return nil
	}
	return part.Decode(v)
}

// decode is Decode; with keepIntegers, integers in fields of type any stay integers.
// t is the type of v.
func (d *Doc) decode(v any, t reflect.Type, keepIntegers bool) (err error) {
	defer recoverToError(d.name, &err)
	if err := d.coerceScalars(t, keepIntegers); err != nil {
		return err
	}
	if err := yaml.NodeToValue(d.body, v, yaml.Strict()); err != nil {
		return d.convertError(err)
	}
	return nil
}
