// Package strictyaml reads the files that people write: workload specs, cluster
// files, policies. It accepts YAML and JSON, whatever the file's name, and is
// strict: an unknown field or a duplicate key is an error with its line and the
// nearest known name.
//
// JSON is parsed as YAML, of which it is a subset. Text that begins with a brace
// need not be valid JSON: comments and trailing commas are allowed.
package strictyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"

	"blis/pkg/registry"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error is an error in a configuration file. Line and Col count from 1; 0 means
// that the position is unknown (an empty file, a value set on the command line).
type Error struct {
	File      string
	Line, Col int
	Msg       string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Doc is a parsed file that knows the position of every value. It is not safe
// for concurrent use.
type Doc struct {
	name string
	file *ast.File
	// lines are the lines of the file without line endings.
	lines [][]rune
}

// Read reads and parses the file called name.
func Read(name string) (*Doc, error) {
	data, err := os.ReadFile(name)
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
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if maxDepth(text) > maxNesting {
		return nil, &Error{File: name, Msg: fmt.Sprintf("nests deeper than %d brackets", maxNesting)}
	}
	d := &Doc{name: name, lines: splitLines(text)}
	if d.file, err = parser.ParseBytes(tabsToSpaces(text), 0); err != nil {
		return nil, d.convertError(err, nil)
	}
	if len(d.file.Docs) == 0 || d.file.Docs[0].Body == nil {
		return nil, &Error{File: name, Msg: "is empty"}
	}
	if len(d.file.Docs) > 1 {
		return nil, &Error{File: name, Msg: "contains more than one document; one file, one document"}
	}
	return d, nil
}

// maxNesting is deeper than any real file; the YAML library's memory grows with
// the square of the depth.
const maxNesting = 2000

// maxDepth returns the maximum number of open brackets, also counting brackets in strings.
func maxDepth(text string) (most int) {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			open++
			most = max(most, open)
		case ']', '}':
			open = max(0, open-1)
		}
	}
	return most
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
// any and keep their spelling in fields of type string.
func (d *Doc) Decode(v any) error {
	if err := d.decode(v, reflect.TypeOf(v)); err != nil {
		return err
	}
	normalizeNumbers(reflect.ValueOf(v))
	return nil
}

// decode is Decode with numbers of the types that the YAML library chooses; t is
// the type of v.
func (d *Doc) decode(v any, t reflect.Type) (err error) {
	defer recoverToError(d.name, &err)
	defer d.coerceScalars(t)()
	if err := yaml.NodeToValue(d.file.Docs[0].Body, v, yaml.Strict()); err != nil {
		return d.convertError(d.firstUnknownField(err, t), fieldNames(t))
	}
	return d.checkNumbers(t)
}

// firstUnknownField returns err or, if err is about one of several unknown fields
// of a mapping, the error about the first of them: the YAML library reports any.
// The document cannot be decoded afterwards.
func (d *Doc) firstUnknownField(err error, t reflect.Type) error {
	var first, next *yaml.UnknownFieldError
	if !errors.As(err, &first) {
		return err
	}
	of := d.mappingOf(first.Token)
	for next = first; of != nil && d.mappingOf(next.Token) == of; {
		if next.Token.Position.Offset < first.Token.Position.Offset {
			first = next
		}
		at := next.Token
		of.Values = slices.DeleteFunc(of.Values, func(v *ast.MappingValueNode) bool { return v.Key.GetToken() == at })
		again := yaml.NodeToValue(d.file.Docs[0].Body, reflect.New(t.Elem()).Interface(), yaml.Strict())
		if !errors.As(again, &next) {
			break
		}
	}
	return first
}

// mappingOf returns the mapping that contains key, nil if none does.
func (d *Doc) mappingOf(key *token.Token) (found *ast.MappingNode) {
	isKey := func(v *ast.MappingValueNode) bool { return v.Key.GetToken() == key }
	ast.Walk(visitor(func(n ast.Node) {
		if m, ok := n.(*ast.MappingNode); ok && slices.ContainsFunc(m.Values, isKey) {
			found = m
		}
	}), d.file.Docs[0].Body)
	return found
}

// visitor is a function called for every node of a tree.
type visitor func(ast.Node)

// Visit calls v for n and visits its children.
func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// recoverToError turns a panic into an error: the YAML library panics on some
// malformed documents.
func recoverToError(name string, err *error) {
	if r := recover(); r != nil {
		*err = &Error{File: name, Msg: fmt.Sprintf("cannot be read as YAML or JSON: %v", r)}
	}
}

// Errorf returns an error about the value at path ("clients[2].arrival.cv") with
// the position of that value. If the document does not contain the path, the
// error says so and has the position of the nearest parent.
func (d *Doc) Errorf(path, format string, args ...any) error {
	e := &Error{File: d.name, Msg: path + ": " + fmt.Sprintf(format, args...)}
	if d.find(path) == nil {
		e.Msg = path + " is not in the file: " + fmt.Sprintf(format, args...)
	}
	for at := path; ; {
		if node := d.find(at); node != nil {
			if at, ok := d.startOf(node); ok {
				e.Line, e.Col = at.line, at.col
			}
			return e
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			return e
		}
		at = at[:cut]
	}
}

// convertError turns an error of the YAML library into an *Error; fields are the
// known field names.
func (d *Doc) convertError(err error, fields []string) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return &Error{File: d.name, Msg: err.Error()}
	}
	t := ye.GetToken()
	if t == nil {
		return &Error{File: d.name, Msg: ye.GetMessage()}
	}
	e := d.errorAt(t, ye.GetMessage())
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &unknown):
		e.Msg = fmt.Sprintf("unknown field %q", t.Value)
		if near := registry.Closest(t.Value, fields); near != "" && near != t.Value { // else it is a field of another struct
			e.Msg += fmt.Sprintf("; did you mean %q?", near)
		}
	case errors.As(err, &mistyped):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s, is %q", typeName(mistyped.DstType), t.Value)
	case errors.As(err, &overflow):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s of at most 64 bits, is %s", typeName(overflow.DstType), t.Value)
	}
	return e
}

// keyOf returns the key of the value t and a space, "" if t has no key.
func keyOf(t *token.Token) string {
	if t.Prev != nil && t.Prev.Type == token.MappingValueType && t.Prev.Prev != nil {
		return t.Prev.Prev.Value + " "
	}
	return ""
}

// fieldNames returns the yaml names of all fields reachable from t.
func fieldNames(t reflect.Type) []string {
	var names []string
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for f := range fields(t) {
				names = append(names, f.name)
				walk(t.FieldByIndex(f.index).Type)
			}
		}
	}
	walk(t)
	return names
}

// namedField is a struct field with its name in documents.
type namedField struct {
	name  string
	index []int // for reflect.Type.FieldByIndex
}

// fields iterates over the fields that the struct type t has in documents,
// including those of embedded ("inline") structs.
func fields(t reflect.Type) iter.Seq[namedField] {
	return func(yield func(namedField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if options == "inline" || name == "" || name == "-" {
				continue
			}
			if !yield(namedField{name, f.Index}) {
				return
			}
		}
	}
}
