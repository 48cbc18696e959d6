package sim

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// An idSet is a set of strings.
func TestIDSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefixes := []string{"", "a", "a0", "chat/", "chat/1/", "é"}
		var s idSet
		want := map[string]bool{}
		for range 200 {
			id := rapid.SampledFrom(prefixes).Draw(t, "prefix") +
				strings.Repeat("0", rapid.IntRange(0, 2).Draw(t, "zeros"))
			if rapid.Bool().Draw(t, "number") {
				id += strconv.Itoa(rapid.IntRange(0, 30).Draw(t, "n"))
			}
			if s.has(id) != want[id] || s.add(id) == want[id] || !s.has(id) {
				t.Fatalf("%q: taken %v", id, want[id])
			}
			want[id] = true
		}
	})
}

func TestSplitNumberIsUnique(t *testing.T) {
	for _, c := range []struct {
		id, prefix string
		n          uint64
	}{{"chat/17", "chat/", 17}, {"r007", "r00", 7}, {"r010", "r0", 10}, {"r0", "r", 0}, {"r00", "r0", 0}, {"7", "", 7},
		{"a1234567890123456789", "a1", 234567890123456789}} {
		if prefix, n, ok := splitNumber(c.id); prefix != c.prefix || n != c.n || !ok {
			t.Errorf("%s: %q %d %v", c.id, prefix, n, ok)
		}
	}
	if _, _, ok := splitNumber("a1b"); ok {
		t.Error("a1b ends with a number")
	}
}

func TestIDsThatCountUpTakeNoMemory(t *testing.T) {
	var s idSet
	for i := range 100_000 {
		if !s.add(fmt.Sprintf("chat/%d", i)) || !s.add(fmt.Sprintf("code/%d", i)) {
			t.Fatal(i)
		}
	}
	if s.hashes.used > 0 || len(s.sequences) != 2 {
		t.Errorf("%d hashes, %d sequences", s.hashes.used, len(s.sequences))
	}
}

func TestIDsOfSteps(t *testing.T) {
	request := func(id string) stream.Arrival { return stream.Arrival{Request: stream.Request{ID: id}} }
	session := func(id string, steps ...string) stream.Arrival {
		a := stream.Arrival{IsSession: true, Session: stream.Session{ID: id}}
		for _, step := range steps {
			a.Session.Steps = append(a.Session.Steps, stream.SessionStep{ID: step})
		}
		return a
	}
	for _, c := range []struct {
		arrivals []stream.Arrival
		want     string
	}{
		{[]stream.Arrival{session("s", "1", "2"), session("t", "1", "2"), request("u/1")}, ""},
		{[]stream.Arrival{session("s", "1", "1")}, `id "s/1" is a duplicate`},
		{[]stream.Arrival{request("s"), session("s", "1")}, `id "s" is a duplicate`},
		{[]stream.Arrival{request("s/1"), session("s", "1")}, `id "s/1" is a duplicate`},
		{[]stream.Arrival{session("s", "1"), request("s/1")}, `id "s/1" can be that of a step of the session "s"`},
		{[]stream.Arrival{session("a/b", "1"), request("a/b/1")},
			`id "a/b/1" can be that of a step of the session "a/b"`},
		{[]stream.Arrival{session("a", "b/c"), session("a/b", "c")}, `id "a/b/c" is a duplicate`},
		{[]stream.Arrival{session("a/b", "c"), session("a", "b/c")},
			`id "a/b/c" can be that of a step of the session "a/b"`},
		{[]stream.Arrival{session("a", "b/c", "d/e"), session("b", "b/c")}, ""},
	} {
		var u usedIDs
		var err error
		for i := range c.arrivals {
			if err == nil {
				err = u.check(&c.arrivals[i])
			}
		}
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
