package stream

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// scanner reads the JSON of one line, strictly: it accepts what encoding/json does,
// except nulls, duplicate fields, names in another letter case, and invalid Unicode.
// It keeps the first error; after that all values are zero.
type scanner struct {
	b   []byte
	i   int
	err error
	// scratch holds the current string if it has escapes.
	scratch []byte
	names   interner
	piece   strings.Builder // for short-lived strings
	// last has the string that each field had last, by its number.
	last []string
	// followers[o.number][m] is the field of o that was read last behind field m-1, first if m is 0.
	followers [][maxFields + 1]uint8
}

// maxFields is the largest number of fields of an object: fieldIterator has a bit for each.
const maxFields = 64

// record decodes the record on a line into v.
func (s *scanner) record(line []byte, v interface{ decode(*scanner) }) error {
	s.reset(line)
	v.decode(s)
	if s.skipSpace(); s.err == nil && s.i < len(s.b) {
		s.syntaxError("unexpected data after the record")
	}
	return s.err
}

// reset begins another line.
func (s *scanner) reset(line []byte) { s.b, s.i, s.err = line, 0, nil }

// kindOf returns the kind of the record on line. It usually comes first.
func (s *scanner) kindOf(line []byte) (string, error) {
	s.reset(line)
	if s.atWords(writtenKind, 0x3a22646e696b227b, 0x3a22646e696b227b) {
		kind := s.internedString(&kindField)
		return kind, s.err
	}
	for begun := false; s.advance(begun, '{', '}'); begun = true {
		if string(s.fieldName()) == kindField.Name {
			kind := s.internedString(&kindField)
			return kind, s.err
		}
		s.skipValue()
	}
	s.failf("kind is missing")
	return "", s.err
}

var kindField = Field{Name: "kind"}

// writtenKind is what a Writer writes before the kind of a record.
const writtenKind = `{"kind":`

// skipValue moves past the next value of any type. It checks only what it needs to
// find the end.
func (s *scanner) skipValue() {
	for s.err == nil {
		switch c := s.peek(); {
		case s.i >= len(s.b):
			s.syntaxError("the line ends inside the record")
			return
		case c == '"':
			s.rawString()
		case c == '{' || c == '[':
			s.skipNested()
		case c == ',' || c == '}':
			return
		default:
			b, i := s.b, s.i+1
			for i < len(b) && !structural[b[i]] {
				i++
			}
			s.i = i
		}
	}
}

// skipNested moves past the object or list that begins here, or to the end of the line if it has no end.
func (s *scanner) skipNested() {
	b, i := s.b, s.i
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i++
			if n := unescapedLength(b[i:]); i+n < len(b) && b[i+n] == '"' {
				i += n + 1
				continue
			}
			s.i = i
			if s.unescape(); s.err != nil {
				return
			}
			i = s.i
		case '{', '[':
			depth++
			i++
		case '}', ']':
			i++
			if depth--; depth == 0 {
				s.i = i
				return
			}
		default:
			for i++; i < len(b) && !nested[b[i]]; {
				i++
			}
		}
	}
	s.i = i
}

// structural marks the bytes that skipValue looks at, nested those that skipNested does.
var (
	structural = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true, ',': true}
	nested     = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}
)

func (s *scanner) failf(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// syntaxError records that the line is not valid JSON.
func (s *scanner) syntaxError(what string) {
	s.failf("invalid JSON at column %d: %s", s.i+1, what)
}

// typeError records that f may not have the next value.
func (s *scanner) typeError(f *Field, must string) {
	s.failf("%s must be %s, not %s", f.Name, must, s.describeValue())
}

// describeValue describes the next value, shortened, for errors.
func (s *scanner) describeValue() string {
	const maxLength = 30
	if s.i >= len(s.b) {
		return "the end of the line"
	}
	rest := s.b[s.i:]
	if begun := map[byte]string{'{': "an object", '[': "a list", '"': "a string"}[rest[0]]; begun != "" {
		return begun
	}
	end := slices.IndexFunc(rest[1:], endsNumber) + 1
	if end == 0 {
		end = len(rest)
	}
	if end > maxLength {
		return string(rest[:maxLength]) + "…"
	}
	return string(rest[:end])
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\t' || c == '\r' || c == '\n') }

func (s *scanner) skipSpace() {
	for s.i < len(s.b) && isSpace(s.b[s.i]) {
		s.i++
	}
}

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// consume skips space and then the byte c; it returns false if c is not next.
func (s *scanner) consume(c byte) bool {
	if s.peek() != c {
		s.skipSpace()
		if s.peek() != c {
			return false
		}
	}
	s.i++
	return true
}

// fieldIterator is the state of reading the fields of one object.
type fieldIterator struct {
	object  *Object
	field   *Field // the field whose value is next
	index   int    // of field in the object
	seen    uint64 // bit i is set if Fields[i] was read
	next    int    // index + 1: the next field if they are in order
	started bool
}

// nextField moves to the value of the next field of an object. It returns false
// on error, or past the end of the object after the last field.
func (s *scanner) nextField(m *fieldIterator) bool {
	if s.err != nil {
		return false
	}
	if !s.advance(m.started, '{', '}') {
		s.checkRequired(m)
		return false
	}
	m.started = true
	return s.matchKey(m) || s.lookupKey(m)
}

// atWord moves past key, which is what a Writer writes before a value; it returns false if key is not next, if space is
// after it, or near the end of the line. key has less than eight bytes, which are those of word: most keys that are
// tried are not there, and to compare words is faster than to call for a comparison of strings.
func (s *scanner) atWord(key string, word uint64) bool {
	b := s.b[s.i:]
	if len(b) < 8 || binary.LittleEndian.Uint64(b)<<(64-8*len(key)) != word<<(64-8*len(key)) || isSpace(b[len(key)]) {
		return false
	}
	s.i += len(key)
	return true
}

// atWords is atWord for a key of eight to sixteen bytes, of which head and tail are the first and the last eight.
func (s *scanner) atWords(key string, head, tail uint64) bool {
	b := s.b[s.i:]
	if len(b) <= len(key) || binary.LittleEndian.Uint64(b) != head ||
		binary.LittleEndian.Uint64(b[len(key)-8:]) != tail || isSpace(b[len(key)]) {
		return false
	}
	s.i += len(key)
	return true
}

// atKey is atWord for a longer key, which begins with head.
func (s *scanner) atKey(key string, head uint64) bool {
	b := s.b[s.i:]
	if len(b) <= len(key) || binary.LittleEndian.Uint64(b) != head || string(b[:len(key)]) != key ||
		isSpace(b[len(key)]) {
		return false
	}
	s.i += len(key)
	return true
}

// ends moves past the end of an object of which these fields were read; it returns false if it is not next, or if some
// are missing.
func (s *scanner) ends(o *Object, seen uint64) bool {
	if s.err != nil || s.i >= len(s.b) || s.b[s.i] != '}' || o.required&^seen != 0 {
		return false
	}
	s.i++
	return true
}

// advance moves to the first or next element of an object or list. It returns
// false on error or past the end.
func (s *scanner) advance(begun bool, first, last byte) bool {
	switch c := s.peek(); {
	case begun && c == ',':
		s.i++
	case begun && c == last:
		s.i++
		return false
	case !begun && !s.consume(first):
		s.syntaxError("expected " + string(first))
		return false
	case !begun && s.consume(last):
		return false
	case begun && !s.consume(','):
		if !s.consume(last) {
			s.syntaxError("expected , or " + string(last))
		}
		return false
	}
	s.skipSpace()
	return true
}

// matchKey moves to the value of a field whose name is spelled as a Writer does. Fields usually come in the order of
// the type or, in files of others, in the order of the object before.
func (s *scanner) matchKey(m *fieldIterator) bool {
	if s.followers == nil {
		s.followers = make([][maxFields + 1]uint8, objects)
	}
	follower := &s.followers[m.object.number][m.next]
	if s.passKey(m.object.keys[*follower]) {
		return s.beginField(m, int(*follower))
	}
	for i, key := range m.object.keys {
		if s.passKey(key) {
			*follower = uint8(i)
			return s.beginField(m, i)
		}
	}
	return false
}

// passKey moves past key and the space after it; it returns false if key is not next.
func (s *scanner) passKey(key string) bool {
	end := s.i + len(key)
	if end > len(s.b) || string(s.b[s.i:end]) != key {
		return false
	}
	s.i = end
	s.skipSpace()
	return true
}

// lookupKey moves to the value of a field with its name in any spelling.
func (s *scanner) lookupKey(m *fieldIterator) bool {
	key := s.fieldName()
	if s.err != nil {
		return false
	}
	for i := range m.object.Fields {
		if m.object.Fields[i].Name == string(key) {
			return s.beginField(m, i)
		}
	}
	var names []string
	for _, f := range m.object.Fields {
		names = append(names, f.Name)
	}
	s.err = registry.Unknown("field", string(key), names)
	return false
}

// beginField makes field i the current one, unless it was read before.
func (s *scanner) beginField(m *fieldIterator, i int) bool {
	m.field = &m.object.Fields[i]
	if m.seen>>i&1 != 0 {
		s.failf("%s appears twice", m.field.Name)
		return false
	}
	m.seen |= 1 << i
	m.index, m.next = i, i+1
	return true
}

// fieldName reads a field name, valid until the next string, and moves to its
// value.
func (s *scanner) fieldName() []byte {
	if s.peek() != '"' {
		s.syntaxError("expected a field name")
		return nil
	}
	key := s.rawString()
	if s.err == nil && !s.consume(':') {
		s.syntaxError("expected :")
	}
	s.skipSpace()
	return key
}

// checkRequired checks that no required field is missing.
func (s *scanner) checkRequired(m *fieldIterator) {
	if missing := m.object.required &^ m.seen; missing != 0 {
		s.failf("%s is missing", m.object.Fields[bits.TrailingZeros64(missing)].Name)
	}
}

// nextElement moves to element n of the list that is the value of f. It returns
// false on error, or past the end of the list after the last element.
func (s *scanner) nextElement(f *Field, n int) bool {
	if s.err == nil && s.i+1 < len(s.b) {
		switch c, next := s.b[s.i], s.b[s.i+1]; {
		case n > 0 && c == ']':
			s.i++
			return false
		case n > 0 && c == ',' && !isSpace(next), n == 0 && c == '[' && next != ']' && !isSpace(next):
			s.i++
			return true
		}
	}
	if n == 0 && s.peek() != '[' {
		s.typeError(f, "a list")
	}
	return s.err == nil && s.advance(n > 0, '[', ']')
}

// inElement adds to the error that it is in element n of the list f.
func (s *scanner) inElement(f *Field, n int) { s.err = fmt.Errorf("%s[%d]: %w", f.Name, n, s.err) }

// kind reads a kind, which must be the only one of f.
func (s *scanner) kind(f *Field) {
	if kind := s.stringBytes(f); s.err == nil && string(kind) != f.OneOf[0] {
		s.failf("kind must be %s, not %q", f.OneOf[0], kind)
	}
}
