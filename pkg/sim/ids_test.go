package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The set says of each id what a map says, whether the ids count up, come twice, out of order or with zeros.
func TestIDSetEqualsMap(t *testing.T) {
	prefixes := []string{"", "r", "request-", "a/", "r1", "9x"}
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		prefix, width, n := prefixes[random.IntN(len(prefixes))], random.IntN(4), random.IntN(120)
		strange := random.IntN(3) == 0
		var set idSet
		seen := map[string]bool{}
		for range 200 {
			id := fmt.Sprintf("%s%0*d", prefix, width, n)
			n++
			if strange && random.IntN(4) == 0 {
				id = fmt.Sprintf("%s%0*d", prefixes[random.IntN(len(prefixes))], random.IntN(5), random.IntN(n+20))
				if random.IntN(3) == 0 {
					id += "x"
				}
			}
			added := false
			if random.IntN(8) == 0 {
				added = set.addStep(id, "1")
				id += "/1"
			} else {
				added = set.add(id)
			}
			if added == seen[id] {
				t.Fatalf("seed %d: add(%q) = %v", seed, id, added)
			}
			seen[id] = true
		}
	}
}

func TestCountedIDsTakeNoMemory(t *testing.T) {
	var set idSet
	for i := range 100_000 {
		if !set.add(fmt.Sprintf("r%d", i)) {
			t.Fatalf("r%d is not new", i)
		}
	}
	if set.hashes.slots != nil {
		t.Errorf("%d slots", len(set.hashes.slots))
	}
}

// TestLateDuplicates: with a full table each duplicate is reported, at once or at the end with its line, and nothing
// else is.
func TestLateDuplicates(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	early, late, none := 0, 0, 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 2))
		set := idSet{limit: 1 + random.IntN(40)}
		seen, first := map[string]bool{}, 0
		for line := 1; line <= 300; line++ {
			set.line = line
			id := fmt.Sprintf("r%d", line)
			if random.IntN(2) == 0 {
				id = fmt.Sprintf("x/%d", random.IntN(20_000))
			} else if random.IntN(200) == 0 {
				id = fmt.Sprintf("r%d", random.IntN(310))
			}
			if !set.add(id) {
				if !seen[id] {
					t.Fatalf("seed %d: %q is new", seed, id)
				}
				early++
				continue
			}
			if seen[id] && first == 0 {
				first = line
			}
			seen[id] = true
		}
		got, err := set.finish()
		if err != nil || got != first {
			t.Fatalf("seed %d: line %d, %v; want %d", seed, got, err, first)
		}
		if got > 0 {
			late++
		} else {
			none++
		}
		set.late.runs.Close()
	}
	if early < 50 || late < 100 || none < 20 {
		t.Errorf("%d duplicates found at once; runs with others: %d, without: %d", early, late, none)
	}
}

func TestIDsInMemoryAreBounded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	set := idSet{limit: 1000}
	for i := range 100_000 {
		if !set.addStep("s", fmt.Sprint(i)) {
			t.Fatalf("%d is not new", i)
		}
	}
	if n := len(set.hashes.slots) + cap(set.late.samples) + cap(set.late.scratch); n > 5000 {
		t.Errorf("%d hashes in memory", n)
	}
	if line, err := set.finish(); line != 0 || err != nil {
		t.Errorf("line %d, %v", line, err)
	}
	set.late.runs.Close()
}
