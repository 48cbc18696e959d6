package parquet

import (
	"math"

	"blis/pkg/stream"
)

//go:generate go run blis/pkg/internal/codecgen

// The conversions in rows_gen.go use these. A column is a pointer if it may be null: the
// library does not write every zero of another optional column as null.

// gapRow is one run of equal inter-token latencies.
type gapRow struct {
	GapUS int64 `parquet:"gap_us"`
	Count int64 `parquet:"count"`
}

func rowOfGap(pair *[2]int64) gapRow { return gapRow{pair[0], pair[1]} }
func (g *gapRow) pair() [2]int64     { return [2]int64{g.GapUS, g.Count} }

// convert converts each element of a list; it returns nil for an empty list.
func convert[A, B any](list []A, element func(*A) B) (converted []B) {
	for i := range list {
		converted = append(converted, element(&list[i]))
	}
	return converted
}

// optional is nil for a zero value, which is absent on the wire. valueOf is its inverse.
func optional[T comparable](x T) *T {
	var zero T
	if x == zero {
		return nil
	}
	return &x
}

func valueOf[T any](x *T) (zero T) {
	if x == nil {
		return zero
	}
	return *x
}

// optionalIndex is nil for a missing index. indexOf is its inverse.
func optionalIndex(i stream.Index) *int32 {
	if i.IsZero() {
		return nil
	}
	n := int32(i)
	return &n
}

func indexOf(n *int32) stream.Index {
	if n == nil {
		return stream.NoIndex
	}
	return stream.Index(*n)
}

// optionalMicros is nil for an event that did not happen. microsOf is its inverse.
func optionalMicros(t stream.Micros) *int64 {
	if t.IsZero() {
		return nil
	}
	us := int64(t)
	return &us
}

func microsOf(us *int64) stream.Micros {
	if us == nil {
		return stream.Never
	}
	return stream.Micros(*us)
}

// optionalNumber is nil for a missing number. numberOf is its inverse.
func optionalNumber(n stream.Number) *float64 {
	if n.IsZero() {
		return nil
	}
	x := float64(n)
	return &x
}

func numberOf(x *float64) stream.Number {
	if x == nil {
		return stream.Number(math.NaN())
	}
	return stream.Number(*x)
}
