package strictyaml

import (
	"fmt"
	"strings"
)

const (
	// maxNesting is deeper than any real file; the YAML library's memory grows with the square of the depth.
	maxNesting = 2000
	// maxBlockKeys is more than any real file has in one mapping without braces; the YAML library's time grows
	// with the square of their number. In braces it is linear.
	maxBlockKeys = 10_000
)

// checkSize returns an error if the YAML library would need too much time or memory for text.
func checkSize(name, text string) error {
	if maxDepth(text) > maxNesting {
		return &Error{File: name, Msg: fmt.Sprintf("nests deeper than %d brackets", maxNesting)}
	}
	if line := longMapping(text); line > 0 {
		return &Error{File: name, Line: line,
			Msg: fmt.Sprintf("a mapping of more than %d keys must be in braces, as in JSON", maxBlockKeys)}
	}
	return nil
}

// maxDepth returns the maximum number of open brackets, also counting brackets in strings.
func maxDepth(text string) (most int) {
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

// longMapping returns the line, from 1, with a key too many of a mapping without braces; 0 if there is none.
// Lines that end with a comma are in braces.
func longMapping(text string) int {
	type mapping struct{ indent, keys int }
	var open []mapping
	n := 0
	for line := range strings.Lines(text) {
		n++
		content := strings.TrimLeft(line, " ")
		indent := len(line) - len(content)
		content = strings.TrimSpace(content)
		if content == "" || content[0] == '#' || strings.HasSuffix(content, ",") {
			continue
		}
		for len(open) > 0 && open[len(open)-1].indent > indent {
			open = open[:len(open)-1]
		}
		if !strings.Contains(content, ": ") && !strings.HasSuffix(content, ":") || content[0] == '-' {
			continue
		}
		if len(open) == 0 || open[len(open)-1].indent < indent {
			open = append(open, mapping{indent, 0})
		}
		last := &open[len(open)-1]
		if last.keys++; last.keys > maxBlockKeys {
			return n
		}
	}
	return 0
}
