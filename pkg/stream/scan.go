package stream

import (
	"fmt"
	"math/bits"
	"slices"

	"blis/pkg/registry"
)

// scanner reads the JSON of one line, strictly: what encoding/json accepts
// less nulls, doubled fields, letter case ignored in names, and text that is
// not Unicode. The first error sticks; after it everything is empty.
type scanner struct {
	b   []byte
	i   int
	err error
	// scratch holds the string at hand if it had escapes.
	scratch []byte
	names   interner
}

// reset begins a new line.
func (s *scanner) reset(line []byte) { s.b, s.i, s.err = line, 0, nil }

// kindOf returns the kind of the record on a line, which mostly comes first.
func (s *scanner) kindOf(line []byte) (string, error) {
	s.reset(line)
	for begun := false; s.more(begun, '{', '}'); begun = true {
		if string(s.fieldName()) == kindField.Name {
			kind := s.name(&kindField)
			return kind, s.err
		}
		s.skip()
	}
	s.failf("kind is missing")
	return "", s.err
}

var kindField = Field{Name: "kind"}

// skip moves behind the value here, whatever it is. It looks at it only as far
// as it must to find its end.
func (s *scanner) skip() {
	for depth := 0; s.err == nil; {
		switch c := s.peek(); {
		case s.i >= len(s.b):
			s.invalid("the line ends within the record")
			return
		case c == '"':
			s.raw()
		case c == '{' || c == '[':
			depth++
			s.i++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
			s.i++
		case depth == 0 && (c == ',' || c == '}'):
			return
		default:
			s.i++
		}
	}
}

// finish returns the error, or that of something after the record.
func (s *scanner) finish() error {
	if s.skipSpace(); s.err == nil && s.i < len(s.b) {
		s.invalid("something follows the record")
	}
	return s.err
}

func (s *scanner) failf(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// invalid is the error of what is no JSON.
func (s *scanner) invalid(what string) {
	s.failf("invalid JSON at column %d: %s", s.i+1, what)
}

// wrong is the error of a value that f may not have.
func (s *scanner) wrong(f *Field, must string) {
	s.failf("%s must be %s, not %s", f.Name, must, s.token())
}

// token is what stands here, shortened, for errors.
func (s *scanner) token() string {
	const most = 30
	switch c := s.peek(); {
	case s.i >= len(s.b):
		return "the end of the line"
	case c == '{':
		return "an object"
	case c == '[':
		return "a list"
	case c == '"':
		return "a string"
	}
	rest := s.b[s.i:]
	end := slices.IndexFunc(rest[1:], func(r byte) bool { return r == ',' || r == '}' || r == ']' || isSpace(r) }) + 1
	if end == 0 {
		end = len(rest)
	}
	if end > most {
		return string(rest[:most]) + "…"
	}
	return string(rest[:end])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func (s *scanner) skipSpace() {
	for s.i < len(s.b) && isSpace(s.b[s.i]) {
		s.i++
	}
}

// peek returns the byte here, 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// take skips space and the byte c, and reports whether it was there.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		s.skipSpace()
		if s.peek() != c {
			return false
		}
	}
	s.i++
	return true
}

// members is the state of reading one object.
type members struct {
	object *Object
	field  *Field // the one whose value is next
	seen   uint64 // bit i: Fields[i] was there
	next   int    // the first field that may follow, if they are in order
	begun  bool
}

// each moves to the value of the next field of the object here; it returns
// false after the last, when the scanner stands behind the object, or on error.
func (s *scanner) each(m *members) bool {
	if s.err != nil {
		return false
	}
	if !s.more(m.begun, '{', '}') {
		s.complete(m)
		return false
	}
	m.begun = true
	return s.expected(m) || s.lookUp(m)
}

// more moves into an object or list, or from one part of it to the next; it
// returns false behind the last part or on error.
func (s *scanner) more(begun bool, first, last byte) bool {
	switch {
	case begun && s.peek() == ',':
		s.i++
	case !begun && !s.take(first):
		s.invalid("expected " + string(first))
		return false
	case !begun && s.take(last):
		return false
	case begun && !s.take(','):
		if !s.take(last) {
			s.invalid("expected , or " + string(last))
		}
		return false
	}
	s.skipSpace()
	return true
}

// expected moves to the value of a field that is written as a Writer writes it.
// Fields mostly come in the order of the table, so that the search seldom takes
// more than a few steps.
func (s *scanner) expected(m *members) bool {
	rest := s.b[s.i:]
	if len(rest) < 2 {
		return false
	}
	keys := m.object.keys
	for i := m.next; i < len(keys); i++ {
		if key := keys[i]; rest[1] == key[1] && len(rest) >= len(key) && string(rest[:len(key)]) == key {
			s.i += len(key)
			s.skipSpace()
			return s.enter(m, i)
		}
	}
	return false
}

// lookUp moves to the value of any field.
func (s *scanner) lookUp(m *members) bool {
	key := s.fieldName()
	if s.err != nil {
		return false
	}
	for i := range m.object.Fields {
		if m.object.Fields[i].Name == string(key) {
			return s.enter(m, i)
		}
	}
	var names []string
	for _, f := range m.object.Fields {
		names = append(names, f.Name)
	}
	s.err = registry.Unknown("field", string(key), names)
	return false
}

// enter makes field i the one whose value is next, if it was not there before.
func (s *scanner) enter(m *members, i int) bool {
	m.field = &m.object.Fields[i]
	if m.seen>>i&1 != 0 {
		s.failf("%s stands there twice", m.field.Name)
		return false
	}
	m.seen |= 1 << i
	m.next = i + 1
	return true
}

// fieldName reads the name of a field, valid until the next string, and moves
// to its value.
func (s *scanner) fieldName() []byte {
	if s.peek() != '"' {
		s.invalid("expected the name of a field")
		return nil
	}
	key := s.raw()
	if s.err == nil && !s.take(':') {
		s.invalid("expected :")
	}
	s.skipSpace()
	return key
}

// complete checks that no required field is missing.
func (s *scanner) complete(m *members) {
	if missing := m.object.required &^ m.seen; missing != 0 {
		s.failf("%s is missing", m.object.Fields[bits.TrailingZeros64(missing)].Name)
	}
}

// element moves to element n of the list here, which is the value of f; it
// returns false after the last, when the scanner stands behind the list, or on
// error.
func (s *scanner) element(f *Field, n int) bool {
	if n == 0 && s.peek() != '[' {
		s.wrong(f, "a list")
	}
	return s.err == nil && s.more(n > 0, '[', ']')
}

// within says that the error is in element n of the list f.
func (s *scanner) within(f *Field, n int) { s.err = fmt.Errorf("%s[%d]: %w", f.Name, n, s.err) }

// kind reads a kind, which is to be the only one of f.
func (s *scanner) kind(f *Field) {
	if kind := s.bytes(f); s.err == nil && string(kind) != f.OneOf[0] {
		s.failf("kind must be %s, not %q", f.OneOf[0], kind)
	}
}
