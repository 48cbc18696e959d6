package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// difference is where two lines differ: the path of a field and both values as JSON, one of which
// may be absent.
type difference struct{ path, original, replayed string }

// String describes the difference between a run and its replay.
func (d *difference) String() string {
	return fmt.Sprintf("%s is %s in the run and %s in the replay", d.path, d.original, d.replayed)
}

// firstDifference compares two objects field by field in the order of is. It is nil if all values
// are equal; then only the formatting differs.
func firstDifference(original, replayed []byte) *difference { return diffJSON("", original, replayed) }

func diffJSON(path string, original, replayed []byte) *difference {
	if bytes.Equal(original, replayed) {
		return nil
	}
	before, after := parseFields(original), parseFields(replayed)
	if before == nil || after == nil || before.list != after.list {
		return &difference{path, excerpt(original), excerpt(replayed)}
	}
	for _, m := range after.all {
		originalValue, found := before.value(m.name)
		if !found {
			return &difference{after.path(path, m.name), "absent", excerpt(m.value)}
		}
		if d := diffJSON(after.path(path, m.name), originalValue, m.value); d != nil {
			return d
		}
	}
	for _, m := range before.all {
		if _, found := after.value(m.name); !found {
			return &difference{before.path(path, m.name), excerpt(m.value), "absent"}
		}
	}
	return nil
}

// jsonFields are the fields of an object, or the elements of a list by index.
type jsonFields struct {
	list bool
	all  []jsonField
}

type jsonField struct {
	name  string
	value json.RawMessage
}

// parseFields returns the fields of an object or a list, nil if the text is neither.
func parseFields(text []byte) *jsonFields {
	dec := json.NewDecoder(bytes.NewReader(text))
	open, _ := dec.Token()
	if open != json.Delim('{') && open != json.Delim('[') {
		return nil
	}
	m := &jsonFields{list: open == json.Delim('[')}
	for dec.More() {
		next := jsonField{name: fmt.Sprintf("[%d]", len(m.all))}
		if !m.list {
			name, err := dec.Token()
			if err != nil {
				return nil
			}
			next.name = name.(string)
		}
		if dec.Decode(&next.value) != nil {
			return nil
		}
		m.all = append(m.all, next)
	}
	return m
}

func (m *jsonFields) value(name string) (json.RawMessage, bool) {
	for i := range m.all {
		if m.all[i].name == name {
			return m.all[i].value, true
		}
	}
	return nil, false
}

// path is the path of the field called name of the value at path at.
func (m *jsonFields) path(at, name string) string {
	if at == "" || m.list {
		return at + name
	}
	return at + "." + name
}

// excerpt cuts a value to a length suitable for a message.
func excerpt(value []byte) string {
	const maxRunes = 80
	if text := []rune(string(value)); len(text) > maxRunes {
		return string(text[:maxRunes]) + "…"
	}
	return string(value)
}

// column is the 1-based position of the first byte in which two lines differ.
func column(original, replayed []byte) int {
	n := 0
	for n < len(original) && n < len(replayed) && original[n] == replayed[n] {
		n++
	}
	return n + 1
}
