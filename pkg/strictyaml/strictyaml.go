// Package strictyaml reads the files that people write: workload specs, cluster
// files, policies. YAML and JSON alike, whatever the file's name, strictly: an
// unknown field is an error that knows its line and the nearest known name, and
// so is a key that stands there twice.
//
// JSON is read as the YAML that it also is. What is no valid JSON but begins with
// a brace is YAML too: comments and commas behind the last value are allowed.
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

// Error is a fault in a configuration file. Line and Col count from 1; 0 means
// that the place is not known (an empty file, a value set on the command line).
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

// Doc is a parsed file that still knows where everything stands. It is not for
// several goroutines at once.
type Doc struct {
	name string
	file *ast.File
	// lines are those of the file, without their ends.
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

// Parse parses data; name is used in errors only.
func Parse(name string, data []byte) (doc *Doc, err error) {
	defer recovered(name, &err)
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if deepest(text) > maxNesting {
		return nil, &Error{File: name, Msg: fmt.Sprintf("nests deeper than %d brackets", maxNesting)}
	}
	d := &Doc{name: name, lines: splitLines(text)}
	if d.file, err = parser.ParseBytes(untabbed(text), 0); err != nil {
		return nil, d.located(err, nil)
	}
	if len(d.file.Docs) == 0 || d.file.Docs[0].Body == nil {
		return nil, &Error{File: name, Msg: "is empty"}
	}
	if len(d.file.Docs) > 1 {
		return nil, &Error{File: name, Msg: "holds more than one document; one file, one document"}
	}
	return d, nil
}

// maxNesting is more than anybody writes; the YAML library takes memory with the
// square of it.
const maxNesting = 2000

// deepest is how many brackets are open at most, whatever they stand for.
func deepest(text string) (most int) {
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

// untabbed is text or, if that is JSON, text with blanks in the place of the tabs
// between its tokens, of which the YAML library loses count.
func untabbed(text string) []byte {
	if strings.Contains(text, "\t") && strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text)) {
		text = strings.ReplaceAll(text, "\t", " ") // no text of JSON holds one
	}
	return []byte(text)
}

// Decode fills v, a pointer to a struct with yaml tags. Fields that the
// document does not name keep the values that v has. Numbers in values of any
// type come as float64, those in texts as they stand.
func (d *Doc) Decode(v any) error {
	if err := d.decode(v, reflect.TypeOf(v)); err != nil {
		return err
	}
	numbers(reflect.ValueOf(v))
	return nil
}

// decode is Decode with numbers as the YAML library has them; t is the type of
// what takes in the document.
func (d *Doc) decode(v any, t reflect.Type) (err error) {
	defer recovered(d.name, &err)
	defer d.retype(t)()
	if err := yaml.NodeToValue(d.file.Docs[0].Body, v, yaml.Strict()); err != nil {
		return d.located(d.firstUnknown(err, t), fieldNames(t))
	}
	return d.checkNumbers(t)
}

// firstUnknown is err or, if that is one unknown field of a mapping with several,
// of which the YAML library names any, the error about the first of them. The
// document cannot be decoded after it.
func (d *Doc) firstUnknown(err error, t reflect.Type) error {
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

// mappingOf returns the mapping of several keys of which key is one, nil if there is
// none.
func (d *Doc) mappingOf(key *token.Token) (found *ast.MappingNode) {
	ast.Walk(visitor(func(n ast.Node) {
		if m, ok := n.(*ast.MappingNode); ok && slices.ContainsFunc(m.Values, func(v *ast.MappingValueNode) bool { return v.Key.GetToken() == key }) {
			found = m
		}
	}), d.file.Docs[0].Body)
	return found
}

// visitor is called with every node.
type visitor func(ast.Node)

// Visit lets v see n and all in it.
func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// recovered makes an error of a panic: the YAML library has some for documents
// that no one would write.
func recovered(name string, err *error) {
	if r := recover(); r != nil {
		*err = &Error{File: name, Msg: fmt.Sprintf("cannot be read as YAML or JSON: %v", r)}
	}
}

// Errorf makes an error about the value at path ("clients[2].arrival.cv"),
// placed at that value or, where the document does not have it, which the error
// then says, at the nearest part of the path that it has.
func (d *Doc) Errorf(path, format string, args ...any) error {
	e := &Error{File: d.name, Msg: path + ": " + fmt.Sprintf(format, args...)}
	if d.find(path) == nil {
		e.Msg = path + " is not in the file: " + fmt.Sprintf(format, args...)
	}
	for at := path; ; {
		if node := d.find(at); node != nil {
			if at, ok := d.begin(node); ok {
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

// located turns an error of the YAML library into one of ours.
func (d *Doc) located(err error, fields []string) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return &Error{File: d.name, Msg: err.Error()}
	}
	t := ye.GetToken()
	if t == nil {
		return &Error{File: d.name, Msg: ye.GetMessage()}
	}
	e := d.fault(t, ye.GetMessage())
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &unknown):
		e.Msg = fmt.Sprintf("unknown field %q", t.Value)
		if near := registry.Closest(t.Value, fields); near != "" && near != t.Value { // else it is a field elsewhere
			e.Msg += fmt.Sprintf("; did you mean %q?", near)
		}
	case errors.As(err, &mistyped):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s, is %q", typeWord(mistyped.DstType), t.Value)
	case errors.As(err, &overflow):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s of at most 64 bits, is %s", typeWord(overflow.DstType), t.Value)
	}
	return e
}

// keyOf returns the key before the value t and a space, "" if it has none.
func keyOf(t *token.Token) string {
	if t.Prev != nil && t.Prev.Type == token.MappingValueType && t.Prev.Prev != nil {
		return t.Prev.Prev.Value + " "
	}
	return ""
}

// fieldNames lists the yaml names of all fields reachable from t.
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

// namedField is a field of a struct by the name that it has in a document.
type namedField struct {
	name  string
	index []int // as reflect.Type.FieldByIndex has it
}

// fields ranges over the fields of the struct t in a document, those of
// embedded ("inline") structs among them.
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
