package parquet

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

// convertPointer converts what v points to.
func convertPointer[A, B any](v *A, f func(*A) B) *B {
	if v == nil {
		return nil
	}
	x := f(v)
	return &x
}

// optional is nil for a zero value, which is absent on the wire. valueOf is its inverse.
func optional[T comparable](x T) *T {
	var zero T
	if x == zero {
		return nil
	}
	return &x
}

func valueOf[T any](x *T) (zero T) { return valueOr(x, zero) }

// present is nil for an absent value. valueOr is its inverse.
func present[T interface{ IsZero() bool }](x T) *T {
	if x.IsZero() {
		return nil
	}
	return &x
}

func valueOr[T any](x *T, absent T) T {
	if x == nil {
		return absent
	}
	return *x
}
