package stream

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// integer reads an integer within the bounds of f.
func (s *scanner) integer(f *Field) int64 {
	// 18 digits cannot overflow, and no bound is longer.
	const maxDigits = 18
	b, start := s.b, s.i
	v, i := int64(0), start
	for ; i < len(b) && isDigit(b[i]); i++ {
		v = v*10 + int64(b[i]-'0')
	}
	digits := i - start
	valid := digits > 0 && digits <= maxDigits && (digits == 1 || b[start] != '0') &&
		(i == len(b) || endsNumber(b[i]))
	if !valid || v < f.Min || v > f.Max {
		if f.Min < 0 && s.peek() == '-' {
			s.i++
			return -s.integer(&Field{Name: f.Name, Max: -f.Min})
		}
		s.typeError(f, fmt.Sprintf("an integer from %d to %d", f.Min, f.Max))
		return 0
	}
	s.i = i
	return v
}

// float reads a finite number.
func (s *scanner) float(f *Field) float64 {
	if v, end := decimal(s.b, s.i); end > 0 {
		s.i = end
		return v
	}
	end := numberEnd(s.b, s.i)
	if end < 0 || end < len(s.b) && !endsNumber(s.b[end]) {
		s.typeError(f, "a number")
		return 0
	}
	v, err := strconv.ParseFloat(string(s.b[s.i:end]), 64)
	if err != nil {
		s.typeError(f, "a finite number")
		return 0
	}
	s.i = end
	return v
}

// maxDecimal is how many digits fit into an unsigned integer.
const maxDecimal = 19

// decimal reads a number without exponent that begins at b[i] and has at most maxDecimal digits, and returns its end, 0
// if there is none.
func decimal(b []byte, i int) (v float64, end int) {
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	start, digits, fraction := i, uint64(0), 0
	for ; i < len(b) && isDigit(b[i]); i++ {
		digits = digits*10 + uint64(b[i]-'0')
	}
	whole := i - start
	if i < len(b) && b[i] == '.' {
		i++
		point := i
		for len(b)-i >= 8 {
			eight, ok := eightDigits(binary.LittleEndian.Uint64(b[i:]))
			if !ok {
				break
			}
			digits, i = digits*1e8+eight, i+8
		}
		for ; i < len(b) && isDigit(b[i]); i++ {
			digits = digits*10 + uint64(b[i]-'0')
		}
		if fraction = i - point; fraction == 0 {
			return 0, 0
		}
	}
	switch {
	case whole == 0, whole > 1 && b[start] == '0', whole+fraction > maxDecimal, i < len(b) && !endsNumber(b[i]):
		return 0, 0
	}
	if v = quotient(digits, fraction); negative {
		v = -v
	}
	return v, i
}

// eightDigits is the number of which word has the eight digits, the first one in its lowest byte; false if some are
// none.
func eightDigits(word uint64) (uint64, bool) {
	const ones, pairs = 0x0101010101010101, 0x000000FF000000FF
	// Only of a digit the upper half of the byte is 3, also after 6 is added.
	if word&(ones*0xF0) != ones*0x30 || (word+ones*6)&(ones*0xF0) != ones*0x30 {
		return 0, false
	}
	word -= ones * '0'
	word = word*10 + word>>8 // numbers of two digits in every other byte
	return (word&pairs*(100+1000000<<32) + word>>16&pairs*(1+10000<<32)) >> 32, true
}

// powersOfTen are those that fit into an unsigned integer.
var powersOfTen = func() (all [maxDecimal + 1]uint64) {
	all[0] = 1
	for i := range maxDecimal {
		all[i+1] = 10 * all[i]
	}
	return all
}()

// quotient is digits divided by the power of ten, rounded once to the nearest number, as strconv.ParseFloat does.
func quotient(digits uint64, power int) float64 {
	const exact = 1 << 53 // up to here integers are
	divisor := powersOfTen[power]
	switch {
	case power == 0 && digits <= exact:
		return float64(digits)
	case digits <= exact && divisor <= exact:
		return float64(digits) / float64(divisor)
	}
	// Both begin with a one bit, so that the result has at least 63 bits. All that is below its last bit is rounded by
	// one that is set if anything is: the others are enough for 53.
	up, down := bits.LeadingZeros64(digits), bits.LeadingZeros64(divisor)
	digits, divisor = digits<<up, divisor<<down
	q, rest := bits.Div64(digits>>1, digits<<63, divisor)
	if rest != 0 {
		q |= 1
	}
	const bias, mantissa = 1023, 52 // of the exponent of a number, which is no subnormal one here
	return float64(int64(q>>1|q&1)) * math.Float64frombits(uint64(bias+down-up-62)<<mantissa)
}

// boolean reads true or false.
func (s *scanner) boolean(f *Field) bool {
	for _, v := range []bool{false, true} {
		word := strconv.FormatBool(v)
		if end := s.i + len(word); end <= len(s.b) && string(s.b[s.i:end]) == word {
			s.i = end
			return v
		}
	}
	s.typeError(f, "true or false")
	return false
}

// numberEnd returns the end of the JSON number that begins at b[i], -1 if there is
// none: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func numberEnd(b []byte, i int) int {
	digits := func() bool {
		start := i
		for i < len(b) && isDigit(b[i]) {
			i++
		}
		return i > start
	}
	accept := func(set string) bool {
		found := i < len(b) && strings.IndexByte(set, b[i]) >= 0
		if found {
			i++
		}
		return found
	}
	accept("-")
	if !accept("0") && !digits() {
		return -1
	}
	if accept(".") && !digits() {
		return -1
	}
	if accept("eE") {
		if accept("+-"); !digits() {
			return -1
		}
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// endsNumber reports whether c may follow a literal.
func endsNumber(c byte) bool { return literalEnds[c] }

var literalEnds = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\r': true, '\n': true}

// Bounds of the elements of lists of integers.
var (
	itlGapField    = Field{Name: "the gap", Max: maxExact}
	itlCountField  = Field{Name: "the count", Min: 1, Max: maxTokens}
	stepIndexField = Field{Name: "a step index", Max: maxIndex}
)

// pair reads a run of equal gaps: [µs, count].
func (s *scanner) pair() (pair [2]int64) {
	if !s.consume('[') {
		s.failf("a gap must be [µs, count], not %s", s.describeValue())
		return pair
	}
	s.skipSpace()
	pair[0] = s.integer(&itlGapField)
	if s.err == nil && !s.consume(',') {
		s.syntaxError("expected ,")
	}
	s.skipSpace()
	pair[1] = s.integer(&itlCountField)
	if s.err == nil && !s.consume(']') {
		s.syntaxError("expected ]")
	}
	return pair
}
