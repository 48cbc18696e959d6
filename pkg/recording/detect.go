package recording

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
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
	return !slices.ContainsFunc(names, func(name string) bool { return !h.any(name) })
}

// any reports whether one of the given names or columns is present.
func (h *head) any(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains(h.names, name) || slices.Contains(h.columns, name)
	})
}

// readHead parses the first bytes of a file, of JSON until enough is true of it; nil reads all.
func readHead(text []byte, enough func(*head) bool) *head {
	h := &head{}
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		h.list = text[0] == '['
		h.scan(json.NewDecoder(bytes.NewReader(text)), "", 0, enough)
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

// scan collects the field names in the next value until the text ends or is invalid, or enough is true. path
// is the field of the value in the outermost object; in objects within it no names are collected.
func (h *head) scan(dec *json.Decoder, path string, depth int, enough func(*head) bool) error {
	token, err := dec.Token()
	delim, nested := token.(json.Delim)
	if err != nil || !nested {
		return err
	}
	for dec.More() {
		name, level := path, depth
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name = strings.TrimPrefix(path+"."+key.(string), ".")
			if level++; level <= 2 && !slices.Contains(h.names, name) {
				h.names = append(h.names, name)
			}
			if enough != nil && enough(h) {
				return io.EOF
			}
		}
		if err := h.scan(dec, name, level, enough); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// detect returns the name of a file's format.
func detect(f *file, text []byte) (string, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return "", f.Errorf("is empty; a recording has one of the formats %s", strings.Join(Formats.Names(), ", "))
	}
	h := readHead(text, nil)
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
	case isAIPerfSummary(h):
		what = "this is AIPerf's summary; name profile_export.jsonl or the folder instead"
	case len(h.names) > 0:
		what = "its JSON has " + strings.Join(abbreviate(h.names), ", ")
	case len(h.columns) > 1:
		what = "its columns are " + strings.Join(abbreviate(h.columns), ", ")
	}
	return "", f.Errorf("has no known format (%s): %s; FORMAT:FILE sets the format; a trace is no recording: "+
		"blis-gen --import converts it", strings.Join(Formats.Names(), ", "), what)
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
