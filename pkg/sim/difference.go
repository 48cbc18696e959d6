package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// firstDifference describes where the record of a run and that of its replay differ: the path of a
// field and both values as JSON, one of which may be absent. It compares objects field by field in
// the order of replayed. It is empty if all values are equal; then only the formatting differs.
func firstDifference(original, replayed []byte) string { return diffJSON("", original, replayed) }

func diffJSON(path string, original, replayed []byte) string {
	if bytes.Equal(original, replayed) {
		return ""
	}
	kind, before := parseFields(original)
	kindAfter, after := parseFields(replayed)
	if kind != kindAfter || kind == 0 {
		return fmt.Sprintf("%s is %s in the run and %s in the replay", strings.TrimPrefix(path, "."), excerpt(original),
			excerpt(replayed))
	}
	for _, f := range slices.Concat(after, before) { // those of before for the ones that after lacks
		step := f.name
		if kind == '{' {
			step = "." + f.name
		}
		if d := diffJSON(path+step, valueOf(before, f.name), valueOf(after, f.name)); d != "" {
			return d
		}
	}
	return ""
}

// jsonField is a field of an object, or an element of a list, whose name is its index.
type jsonField struct {
	name  string
	value json.RawMessage
}

// parseFields returns the fields of an object, whose kind is '{', or of a list, whose kind is '['. The
// kind of other text is 0.
func parseFields(text []byte) (kind json.Delim, fields []jsonField) {
	dec := json.NewDecoder(bytes.NewReader(text))
	open, _ := dec.Token()
	kind, _ = open.(json.Delim)
	for kind != 0 && dec.More() {
		next := jsonField{name: fmt.Sprintf("[%d]", len(fields))}
		if kind == '{' {
			name, err := dec.Token()
			if err != nil {
				return 0, nil
			}
			next.name = name.(string)
		}
		if dec.Decode(&next.value) != nil {
			return 0, nil
		}
		fields = append(fields, next)
	}
	return kind, fields
}

// valueOf is the value of a field, nil if it is absent.
func valueOf(fields []jsonField, name string) json.RawMessage {
	if i := slices.IndexFunc(fields, func(f jsonField) bool { return f.name == name }); i >= 0 {
		return fields[i].value
	}
	return nil
}

// excerpt cuts a value to a length suitable for a message.
func excerpt(value []byte) string {
	const maxRunes = 80
	if value == nil {
		return "absent"
	}
	if text := []rune(string(value)); len(text) > maxRunes {
		return string(text[:maxRunes]) + "…"
	}
	return string(value)
}
