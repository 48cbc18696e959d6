package stream

// Bounds of the elements of lists of integers.
var (
	itlGapField    = Field{Name: "the gap", Max: maxExact}
	itlCountField  = Field{Name: "the count", Min: 1, Max: maxTokens}
	stepIndexField = Field{Name: "a step index", Max: maxIndex}
)

// pairs reads a run-length encoded list of gaps into the memory of list.
func (s *scanner) pairs(f *Field, list [][2]int64) [][2]int64 {
	for n := 0; s.nextElement(f, n); n++ {
		list = append(list, s.pair())
		if s.err != nil {
			s.inElement(f, n)
		}
	}
	return list
}

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

// indexes reads a list of indexes into the memory of list.
func (s *scanner) indexes(f *Field, list []Index) []Index {
	for n := 0; s.nextElement(f, n); n++ {
		list = append(list, Index(s.integer(&stepIndexField)))
		if s.err != nil {
			s.inElement(f, n)
		}
	}
	return list
}
