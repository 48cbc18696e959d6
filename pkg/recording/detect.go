package recording

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// headSize is how much of a file format detection reads.
const headSize = 64 << 10

// head describes the beginning of a file: the columns of a table in lower case, or the field names
// of JSON.
type head struct {
	columns []string
	// list says that the JSON is a list. names holds the fields of the outermost objects, and those
	// of their objects with a dot: "info.input_tokens".
	list  bool
	names []string
}

// has reports whether all of the given names or columns are present.
func (h *head) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool {
		return !slices.Contains(h.names, n) && !slices.Contains(
			h.columns, n)
	})
}

// any reports whether one of the given names or columns is present.
func (h *head) any(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return slices.Contains(h.names, n) || slices.Contains(
			h.columns, n)
	})
}

// readHead parses the first bytes of a file.
func readHead(text []byte) *head {
	h := &head{}
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		h.list = text[0] == '['
		h.scan(json.NewDecoder(bytes.NewReader(text)))
		return h
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	sheet := csv.NewReader(bytes.NewReader(line))
	sheet.Comma = textio.Separator(line)
	row, err := sheet.Read()
	if err == nil {
		for _, name := range row {
			h.columns = append(h.columns, strings.ToLower(strings.TrimSpace(name)))
		}
	}
	return h
}

// scan collects field names until the text ends or is invalid.
func (h *head) scan(dec *json.Decoder) {
	var path []string // the keys of the open objects; "" in a list
	var keys []bool   // for each open object whether a key comes next
	var objects []bool
	key := ""
	for {
		token, err := dec.Token()
		if err != nil {
			return
		}
		top := len(keys) - 1
		if delim, ok := token.(json.Delim); ok {
			switch delim {
			case '{', '[':
				path, keys, objects = append(path, key), append(keys, delim == '{'), append(objects, delim == '{')
				key = ""
			default:
				path, keys, objects = path[:top], keys[:top], objects[:top]
				if top > 0 && objects[top-1] {
					keys[top-1] = true
				}
			}
			continue
		}
		if top < 0 || !objects[top] {
			continue
		}
		if keys[top] {
			key, keys[top] = token.(string), false
			h.note(path, key)
			continue
		}
		keys[top], key = true, ""
	}
}

// note records a field of an outermost object or of an object in it.
func (h *head) note(path []string, key string) {
	var within []string
	for _, p := range path {
		if p != "" {
			within = append(within, p)
		}
	}
	if len(within) > 1 {
		return
	}
	if name := strings.Join(append(within, key), "."); !slices.Contains(h.names, name) {
		h.names = append(h.names, name)
	}
}

// detect returns the name of a file's format.
func detect(f *file, text []byte) (string, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return "", f.Errorf("is empty; a recording has one of the formats %s", strings.Join(Formats.Names(), ", "))
	}
	h := readHead(text)
	for _, e := range Formats {
		if e.Value.detect(h) {
			return e.Name, nil
		}
	}
	what := "it is neither a table with column names nor JSON"
	switch {
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text[:bytes.LastIndexByte(text, '\n')+1]):
		what = "it is not UTF-8 text"
	case strings.HasSuffix(f.Position.Name, ".header.yaml"):
		what = "this is the header of a TraceV2; name the CSV file instead"
	case len(h.names) > 0:
		what = "its JSON has " + strings.Join(abbreviate(h.names), ", ")
	case len(h.columns) > 1:
		what = "its columns are " + strings.Join(abbreviate(h.columns), ", ")
	}
	return "", f.Errorf("has no known format (%s): %s; FORMAT:FILE sets the format", strings.Join(Formats.Names(),
		", "), what)
}

// abbreviate returns the first names of a list, printable.
func abbreviate(names []string) (shown []string) {
	const most = 12
	for i, name := range names {
		if i == most {
			return append(shown, "...")
		}
		shown = append(shown, stream.Printable(name))
	}
	return shown
}

// hasWords reports whether every word of choice is a word of name.
func hasWords(name, choice string) bool {
	words := strings.Fields(name)
	required := strings.FieldsFunc(choice, func(r rune) bool { return r == ' ' || r == ',' })
	return len(required) > 0 && !slices.ContainsFunc(required,
		func(w string) bool { return !slices.Contains(words, w) })
}
