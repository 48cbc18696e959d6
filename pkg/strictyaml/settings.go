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

// ReadSettings reads a file of one flat object, {"routing.params.queue-depth": 0.3},
// and returns its entries in order. The values are JSON.
func ReadSettings(name string) ([]Setting, error) {
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
