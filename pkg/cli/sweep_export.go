package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"blis/pkg/deploy"
	"blis/pkg/sweep"
)

// exported is a line of --sweep with --export: one of the best configurations, for a real deployment.
type exported struct {
	Kind string `json:"kind"`
	// Rank is 1 for the best one.
	Rank int `json:"rank"`
	// PolicyID is the digest of the policies, as in runs.
	PolicyID string         `json:"policy_id"`
	Set      map[string]any `json:"set,omitempty"`
	Policies string         `json:"policies,omitempty"`
	// Runs identify the results, which SimFitness and SimMetrics are means of.
	Runs       []exportedRun      `json:"runs"`
	SimFitness exportedFitness    `json:"sim_fitness"`
	SimMetrics map[string]float64 `json:"sim_metrics"`
	Deployment exportedFiles      `json:"config_for_deployment"`
}

type exportedRun struct {
	ID       string  `json:"id"`
	Workload string  `json:"workload"`
	Rate     float64 `json:"rate,omitempty"`
	Seed     uint64  `json:"seed"`
	Score    float64 `json:"score"`
}

type exportedFitness struct {
	Score float64            `json:"score"`
	Terms map[string]float64 `json:"terms,omitempty"`
}

// exportedFiles has the text for the target, or why there is none.
type exportedFiles struct {
	Files  map[string]string `json:"files"`
	Errors map[string]string `json:"errors"`
}

// bestWriter writes the best configurations of a sweep for a target instead of its results.
type bestWriter struct {
	target  string
	top     int
	call    sweep.Call
	out     io.Writer
	results []*sweep.Result
}

func (w *bestWriter) write(r *sweep.Result) error {
	w.results = append(w.results, r)
	return nil
}

func (w *bestWriter) close() error {
	best, err := sweep.Top(w.results, w.top)
	if err != nil {
		return err
	}
	runner, err := sweep.NewRunner(sweep.Options{}, nil, w.call)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w.out)
	enc.SetEscapeHTML(false)
	var failed []error
	for i, b := range best {
		x := exported{Kind: "deployment", Rank: i + 1, PolicyID: b.Results[0].Policy, Set: b.Set,
			Policies: b.Override.Policies, SimFitness: exportedFitness{b.Score, b.Terms()},
			Deployment: exportedFiles{map[string]string{}, map[string]string{}}}
		if x.SimMetrics, err = b.Values(); err != nil {
			return err
		}
		for _, r := range b.Results {
			x.Runs = append(x.Runs, exportedRun{r.ID, r.Workload, r.Rate, r.Seed, r.Fitness.Score})
		}
		c, err := runner.Cluster(&sweep.Point{Override: b.Override})
		if err != nil {
			return err
		}
		text, err := deploy.Export(w.target, c)
		if err != nil {
			failed = append(failed, err)
			x.Deployment.Errors[w.target] = err.Error()
		} else {
			x.Deployment.Files[w.target] = text
		}
		if err := enc.Encode(&x); err != nil {
			return err
		}
	}
	if len(failed) == len(best) {
		return fmt.Errorf("none of the best %d configurations can be exported; the first: %w", len(best), failed[0])
	}
	return nil
}

// validateTop rejects exports of a sweep that have no ranking.
func (c *simCommand) validateTop() error {
	switch s := &c.Sweep; {
	case c.Export == "":
		return nil
	case s.Fitness == "":
		return errors.New("--sweep with --export needs --fitness, which ranks the configurations")
	case s.Shard != sweep.Shard{}:
		return errors.New("--shard has no effect with --export: all results are ranked")
	case isTable(c.Output):
		return fmt.Errorf("-o %s: --export writes JSON lines, not a table", c.Output)
	case c.Top < 1:
		return fmt.Errorf("--top must be at least 1, is %d", c.Top)
	}
	return nil
}
