package reference

import "testing"

// TestRandomPipelines: the random cases have what is rare, and obey the laws.
func TestRandomPipelines(t *testing.T) {
	const cases = 600
	counts := map[string]int{}
	for seed := range uint64(cases) {
		c, requests := RandomPipeline(seed)
		r := Run(c, requests)
		if c.Groups == nil {
			checkLaws(t, seed, c, requests, r)
		}
		checkStages(t, seed, c, r)
		p := r.Pipeline
		for name, n := range map[string]int{"empty": p.Empty, "overlaps": p.Overlaps, "token waits": p.TokenWaits,
			"stage waits": p.StageWaits, "flying": p.Flying, "overruns": r.Async.Overruns} {
			if n > 0 {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases: %v", cases, counts)
	for name, least := range map[string]int{"empty": cases / 2, "overlaps": cases / 3, "token waits": cases / 10,
		"stage waits": cases / 4, "flying": cases / 50, "overruns": cases / 20} {
		if counts[name] < least {
			t.Errorf("%s in %d of %d cases, want at least %d", name, counts[name], cases, least)
		}
	}
}

// checkStages: batches end in the order in which they start, at most Batches are in flight, and the stages compute
// all of each step.
func checkStages(t *testing.T, seed uint64, c Config, r Result) {
	t.Helper()
	for i, steps := range r.Steps {
		computed := int64(0)
		for k, s := range steps {
			computed += c.stepTime(s.Batch) + s.AdapterUS
			if k == 0 {
				continue
			}
			before := steps[k-1]
			if s.StartUS < before.StartUS || s.EndUS < before.EndUS {
				t.Errorf("seed %d: step %d of replica %d overtakes the one before", seed, k, i)
			}
			if k >= c.Pipeline.Batches && s.StartUS < steps[k-c.Pipeline.Batches].EndUS {
				t.Errorf("seed %d: step %d of replica %d is one of too many in flight", seed, k, i)
			}
		}
		if r.StageUS[i] < computed {
			t.Errorf("seed %d: stages of replica %d computed for %d µs, its steps take %d µs", seed, i, r.StageUS[i],
				computed)
		}
	}
}
