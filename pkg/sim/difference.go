package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// difference is where two lines differ: a field by its path, and both values as
// JSON, of which one may be absent.
type difference struct{ path, was, is string }

// String says it, of a run and its replay.
func (d *difference) String() string {
	return fmt.Sprintf("%s is %s in the run and %s in the replay", d.path, d.was, d.is)
}

// firstDifference compares two objects, field by field in the order of is. It is nil
// if all values are the same: then only their form differs.
func firstDifference(was, is []byte) *difference { return differ("", was, is) }

func differ(path string, was, is []byte) *difference {
	if bytes.Equal(was, is) {
		return nil
	}
	before, after := membersOf(was), membersOf(is)
	if before == nil || after == nil || before.list != after.list {
		return &difference{path, excerpt(was), excerpt(is)}
	}
	for _, m := range after.all {
		old, found := before.value(m.name)
		if !found {
			return &difference{after.path(path, m.name), "absent", excerpt(m.value)}
		}
		if d := differ(after.path(path, m.name), old, m.value); d != nil {
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

// members are those of an object, or of a list by their place.
type members struct {
	list bool
	all  []member
}

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object or a list, nil if the text is none.
func membersOf(text []byte) *members {
	dec := json.NewDecoder(bytes.NewReader(text))
	open, _ := dec.Token()
	if open != json.Delim('{') && open != json.Delim('[') {
		return nil
	}
	m := &members{list: open == json.Delim('[')}
	for dec.More() {
		next := member{name: fmt.Sprintf("[%d]", len(m.all))}
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

func (m *members) value(name string) (json.RawMessage, bool) {
	for i := range m.all {
		if m.all[i].name == name {
			return m.all[i].value, true
		}
	}
	return nil, false
}

// path is that of the member of that name of what is at path at.
func (m *members) path(at, name string) string {
	if at == "" || m.list {
		return at + name
	}
	return at + "." + name
}

// excerpt is as much of a value as a message should have.
func excerpt(value []byte) string {
	const most = 80
	if text := []rune(string(value)); len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(value)
}

// column counts, from 1, up to the first byte in which two lines differ.
func column(was, is []byte) int {
	n := 0
	for n < len(was) && n < len(is) && was[n] == is[n] {
		n++
	}
	return n + 1
}
