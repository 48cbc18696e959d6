package hardware

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// quotedKey is a key of a JSON object; a string cannot contain one, for its quotes are escaped.
var quotedKey = regexp.MustCompile(`"(\w+)":`)

// YAML is a file with the set alone: a line for each field, or for each element of a list of
// objects or strings.
func (s *Set) YAML() string {
	var b strings.Builder
	b.WriteString("version: 1\ncoefficients:\n")
	indent := "  - "
	for _, f := range []struct {
		name  string
		value any
	}{
		{"model", s.Model}, {"gpu", s.GPU}, {"tensor_parallel_size", s.TensorParallelSize},
		{"pipeline_parallel_size", s.PipelineParallelSize}, {"data_parallel_size", s.DataParallelSize},
		{"engine", s.Engine}, {"settings", s.Settings}, {"latency", s.Latency}, {"range", s.Range},
		{"source", s.Source}, {"method", s.Method}, {"recordings", s.Recordings}, {"ci", s.CI},
		{"uncertainty", s.Uncertainty},
		{"errors", s.Errors}, {"warnings", s.Warnings},
	} {
		if text := flow(f.value); text != ` ""` && text != " {}" && text != " null" && text != " []" {
			fmt.Fprintf(&b, "%s%s:%s\n", indent, f.name, text)
			indent = "    "
		}
	}
	return b.String()
}

// flow is a value in flow style; a list of objects or strings is in block style.
func flow(v any) string {
	var list []string
	switch v := v.(type) {
	case []Recording:
		for _, e := range v {
			list = append(list, flow(e))
		}
	case []Error:
		for _, e := range v {
			list = append(list, flow(e))
		}
	case []string:
		for _, e := range v {
			list = append(list, flow(e))
		}
	default:
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			panic("hardware: " + err.Error())
		}
		return " " + spaced(strings.TrimSpace(b.String()))
	}
	if list == nil {
		return " []"
	}
	return "\n      -" + strings.Join(list, "\n      -")
}

// maxLine is about how long a line of a flow may get.
const maxLine = 100

// spaced puts spaces after the colons and commas of JSON outside of strings, drops the quotes
// of keys, and breaks long lists into lines.
func spaced(text string) string {
	text = quotedKey.ReplaceAllString(text, "$1:")
	var b strings.Builder
	inString, escaped, line := false, false, 0
	for _, c := range []byte(text) {
		b.WriteByte(c)
		line++
		switch {
		case c == '"' && !escaped:
			inString = !inString
		case inString:
			escaped = c == '\\' && !escaped
		case c == ',' && line > maxLine:
			b.WriteString("\n        ")
			line = 0
		case c == ',' || c == ':':
			b.WriteByte(' ')
		}
	}
	return b.String()
}
