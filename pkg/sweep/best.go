package sweep

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
)

// Best is one of the best configurations of a sweep.
type Best struct {
	Override
	// Results are those of the configuration, on all its workloads, at all rates and with all its
	// seeds.
	Results []*Result
	// Score is their mean score.
	Score float64
}

// Top returns the n configurations with the highest mean score, in this order; of equal ones the first of the sweep
// comes first. A configuration with a result that has no metrics or no score, or that ended in an early round of
// Halving, is none of them.
func Top(results []*Result, n int) ([]*Best, error) {
	var all []*Best
	byKey := map[string]*Best{}
	excluded := map[*Best]bool{}
	for _, r := range results {
		key, err := json.Marshal([]any{r.Policies, r.Set})
		if err != nil {
			return nil, err
		}
		b := byKey[string(key)]
		if b == nil {
			b = &Best{Override: Override{Policies: r.Policies, Set: r.Set}}
			byKey[string(key)], all = b, append(all, b)
		}
		b.Results = append(b.Results, r)
		if r.Metrics == nil || r.Error != "" || r.Fitness == nil || r.Prefix > 0 {
			excluded[b] = true
		}
	}
	all = slices.DeleteFunc(all, func(b *Best) bool { return excluded[b] })
	if len(all) == 0 {
		return nil, errors.New("no configuration has a score")
	}
	for _, b := range all {
		for _, r := range b.Results {
			b.Score += r.Fitness.Score
		}
		b.Score /= float64(len(b.Results))
	}
	slices.SortStableFunc(all, func(a, b *Best) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(n, len(all))], nil
}

// Terms returns the mean of each term of the fitness over the results.
func (b *Best) Terms() map[string]float64 {
	return b.means(func(r *Result, add func(string, float64)) {
		for _, term := range r.Fitness.Terms {
			add(term.Name, term.Value)
		}
	})
}

// Values returns the mean of each number of the metrics over the results that have it, by path.
func (b *Best) Values() (map[string]float64, error) {
	var failed error
	return b.means(func(r *Result, add func(string, float64)) {
		values, err := r.Values()
		failed = cmp.Or(failed, err)
		for _, v := range values {
			add(v.Path, v.Value)
		}
	}), failed
}

// means returns the means of what each passes to add.
func (b *Best) means(each func(r *Result, add func(string, float64))) map[string]float64 {
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, r := range b.Results {
		each(r, func(name string, x float64) {
			sums[name] += x
			counts[name]++
		})
	}
	for name := range sums {
		sums[name] /= counts[name]
	}
	return sums
}
