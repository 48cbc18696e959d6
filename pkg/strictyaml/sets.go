package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Setting is a path and a value as Set takes them. File, and Line and Col from 1, are
// where it stands; "" is on the command line.
type Setting struct {
	Path, Value, File string
	Line, Col         int
}

// ReadSets reads a file of one flat object, {"routing.params.queue-depth": 0.3},
// and returns its entries in their order. The values are JSON.
func ReadSets(name string) ([]Setting, error) {
	doc, err := Read(name)
	if err != nil {
		return nil, err
	}
	return doc.sets()
}

func (d *Doc) sets() (sets []Setting, err error) {
	defer recoverToError(d.name, &err)
	entries, ok := entriesOf(d.file.Docs[0].Body)
	if !ok {
		return nil, d.errorAt(d.file.Docs[0].Body.GetToken(), `must be an object of paths and values, such as {"routing.params.queue-depth": 0.3}`)
	}
	var object map[string]any
	if err := d.decode(&object, reflect.TypeFor[map[string]any]()); err != nil {
		return nil, err
	}
	for _, entry := range entries {
		key := entry.Key.GetToken()
		value, known := object[key.Value]
		if _, nested := value.(map[string]any); nested {
			return nil, d.errorAt(key, fmt.Sprintf("%s has an object; give each value its own path, such as %s.NAME", key.Value, key.Value))
		}
		if !known || entry.Key.IsMergeKey() || key.Value == "" || strings.Contains(key.Value, "=") {
			return nil, d.errorAt(key, fmt.Sprintf("%q cannot be a path; one looks like routing.params.queue-depth", key.Value))
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false) // expressions compare
		if err := enc.Encode(value); err != nil {
			return nil, d.errorAt(key, fmt.Sprintf("%s: %v", key.Value, err))
		}
		at := d.errorAt(key, "")
		sets = append(sets, Setting{key.Value, strings.TrimSuffix(text.String(), "\n"), d.name, at.Line, at.Col})
	}
	return sets, nil
}

// entriesOf returns the entries of a mapping.
func entriesOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return entriesOf(n.Value)
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}
