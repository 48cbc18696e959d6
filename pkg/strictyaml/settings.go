package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Setting is a path and a value for Doc.Set. File, and Line and Col from 1, are its
// position; File is "" on the command line.
type Setting struct {
	Path, Value, File string
	Line, Col         int
}

// Errorf returns an error about the setting with its position.
func (s *Setting) Errorf(format string, args ...any) *Error {
	e := &Error{File: s.File, Line: s.Line, Col: s.Col, Msg: fmt.Sprintf(format, args...)}
	if s.File == "" {
		e.File = fmt.Sprintf("--set %s=%s", s.Path, s.Value)
	}
	return e
}

// ParseSettings parses overrides as callers write them: "path=value", or "@file" for a file that settingsIn reads.
func ParseSettings(sets []string) (all []Setting, err error) {
	for _, s := range sets {
		path, value, _ := strings.Cut(s, "=")
		more := []Setting{{Path: path, Value: value}}
		if name, isFile := strings.CutPrefix(s, "@"); isFile {
			if more, err = settingsIn(name); err != nil {
				return nil, err
			}
		}
		all = append(all, more...)
	}
	return all, nil
}

// settingsIn reads a file of one flat object, {"routing.params.queue-depth": 0.3},
// and returns its entries in order. The values are JSON.
func settingsIn(name string) ([]Setting, error) {
	doc, err := Read(name)
	if err != nil {
		return nil, err
	}
	return doc.settings()
}

func (d *Doc) settings() (settings []Setting, err error) {
	defer recoverToError(d.name, &err)
	const example = "routing.params.queue-depth"
	var object map[string]any
	_, isMapping := d.body.(ast.MapNode)
	if !isMapping {
		return nil, d.errorAt(d.body.GetToken(), `must be an object of paths and values, such as {"`+example+`": 0.3}`)
	}
	if err := d.decode(&object, reflect.TypeFor[map[string]any](), true); err != nil {
		return nil, err
	}
	for _, entry := range entriesOf(d.body) {
		key := entry.Key.GetToken()
		value, known := object[key.Value]
		if _, nested := value.(map[string]any); nested {
			return nil, d.errorAt(key, fmt.Sprintf("%s has an object; give each value its own path, such as %s.NAME",
				key.Value, key.Value))
		}
		if !known || entry.Key.IsMergeKey() || key.Value == "" || strings.Contains(key.Value, "=") {
			return nil, d.errorAt(key, fmt.Sprintf("%q cannot be a path; one looks like %s", key.Value, example))
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false) // expressions contain < and &
		if err := enc.Encode(value); err != nil {
			return nil, d.errorAt(key, fmt.Sprintf("%s: %v", key.Value, err))
		}
		at := d.errorAt(key, "")
		json := strings.TrimSuffix(text.String(), "\n")
		settings = append(settings, Setting{key.Value, json, d.name, at.Line, at.Col})
	}
	return settings, nil
}

// origin is where a value comes from: a setting, the value at path of another
// document, or, if both are nil, the document's own file.
type origin struct {
	set  *Setting
	doc  *Doc
	path string
}

// within returns the path in o.doc of a path in the document that includes it.
func (o origin) within(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, o.path), ".")
}

// origins are the origins of nodes that are not from the document's own file.
type origins struct {
	// whole are the origins of nodes including all nodes below them.
	whole map[ast.Node]origin
	// part are the last settings that changed a part of a node.
	part map[ast.Node]*Setting
}

func newOrigins() origins {
	return origins{map[ast.Node]origin{}, map[ast.Node]*Setting{}}
}

// of returns the origin of the value that nodes lead to; found is false if they end
// at a parent of it.
func (o *origins) of(nodes []ast.Node, found bool) (last origin) {
	for _, n := range nodes {
		if from, ok := o.whole[n]; ok {
			last = from
		}
	}
	if s := o.part[nodes[len(nodes)-1]]; found && s != nil {
		last = origin{set: s}
	}
	return last
}

// inherit gives a changed copy of a node its origin, and notes the setting that changed it.
func (o *origins) inherit(node, copied ast.Node, s *Setting) {
	if from, ok := o.whole[node]; ok {
		o.whole[copied] = from
	}
	if s == nil {
		s = o.part[node]
	}
	if s != nil {
		o.part[copied] = s
	}
}

// SetBy returns the last setting that set the value at path or a part of it, nil if none did.
func (d *Doc) SetBy(path string) *Setting {
	nodes, found := d.lookup(path)
	return d.origins.of(nodes, found).set
}
