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
