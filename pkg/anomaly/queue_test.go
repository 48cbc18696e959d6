package anomaly

import (
	"fmt"
	"slices"
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"pgregory.net/rapid"
)

// A queue marks the same requests as a plain list, whatever the order of arrivals and departures.
func TestQueueMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			tag     int32
			at, key int64
			marked  int64
		}
		var plain []one
		s := &queues{}
		now, next := int64(0), int32(0)
		var free []int32
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				now += rapid.Int64Range(0, 3).Draw(t, "later")
				tag := next
				if n := len(free); n > 0 {
					tag, free = free[n-1], free[:n-1]
				} else {
					next++
				}
				key := rapid.Int64Range(0, 5).Draw(t, "key")
				plain = append(plain, one{tag, now, key, never})
				s.add(0, waiter{tag: tag, at: now, key: float64(key), id: fmt.Sprint(tag)})
			},
			"go": func(t *rapid.T) {
				if len(plain) == 0 {
					t.Skip("no request waits")
				}
				i := rapid.IntRange(0, len(plain)-1).Draw(t, "who")
				was := plain[i]
				plain = slices.Delete(plain, i, i+1)
				free = append(free, was.tag)
				got, ok := s.remove(0, was.tag)
				if !ok || got.at != was.at || got.marked != was.marked || got.id != fmt.Sprint(was.tag) {
					t.Fatalf("removed %+v (%v), want %+v", got, ok, was)
				}
				if _, again := s.remove(0, was.tag); again {
					t.Fatal("removed twice")
				}
			},
			"mark": func(t *rapid.T) {
				if len(plain) == 0 {
					t.Skip("no request waits")
				}
				before := rapid.IntRange(0, len(plain)-1).Draw(t, "before")
				above := rapid.Int64Range(-1, 5).Draw(t, "above")
				since := now - rapid.Int64Range(0, 10).Draw(t, "waited")
				for i := range plain[:before] {
					if p := &plain[i]; p.key > above && p.at <= since && p.marked == never {
						p.marked = now
					}
				}
				_, place := s.find(0, plain[before].tag)
				s.forReplica(0).mark(place, float64(above), since, now)
			},
		})
	})
}
