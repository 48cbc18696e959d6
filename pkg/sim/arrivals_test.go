package sim

import (
	"fmt"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// shortRequests are the lines of n requests, r0 and so on, that arrive one by one.
func shortRequests(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"kind":"request","id":"r%d","arrival_us":%d,`, i, i)
		lines.WriteString(`"input_tokens":9,"output_tokens":2}` + "\n")
	}
	return lines.String()
}

// Arrivals are supplied one by one up to an error or the end, wherever it is in those read at once.
func TestArrivalsReadAhead(t *testing.T) {
	ahead := len(arrivals{}.ahead)
	for _, n := range []int{0, 1, ahead - 1, ahead, ahead + 1, 3 * ahead} {
		for _, bad := range []bool{false, true} {
			text := shortRequests(n + 1)
			if bad {
				text += `{"kind":"request","id":"r0","arrival_us":0}` + "\n"
			}
			a, _, err := openArrivals(stream.NewReader(strings.NewReader(text)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range n + 1 {
				got, position, err := a.next()
				if err != nil || got.Request.ID != fmt.Sprint("r", i) || position != int64(i) {
					t.Fatalf("arrival %d of %d: %v at %d, %v", i, n+1, got, position, err)
				}
			}
			for range 2 { // the end stays
				got, _, err := a.next()
				where := fmt.Sprintf("stream:%d:", n+2)
				if got != nil || (err != nil) != bad || bad && !strings.Contains(err.Error(), where) {
					t.Errorf("after %d arrivals: %v, %v; want an error: %v", n+1, got, err, bad)
				}
			}
			a.close()
		}
	}
}

// Skip counts the last arrival supplied and all behind it, whether they have been read or not.
func TestArrivalsSkip(t *testing.T) {
	ahead := len(arrivals{}.ahead)
	n := 2*ahead + 5
	for _, supplied := range []int{1, ahead, ahead + 1, n} {
		a, _, err := openArrivals(stream.NewReader(strings.NewReader(shortRequests(n))))
		for range supplied {
			if err == nil {
				_, _, err = a.next()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := a.skip(); err != nil || rest != int64(n-supplied+1) {
			t.Errorf("%d supplied: skip counts %d, %v; want %d", supplied, rest, err, n-supplied+1)
		}
		a.close()
	}
}
