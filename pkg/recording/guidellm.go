package recording

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/textio"
)

// guideReport holds the relevant fields of a GuideLLM report (guidellm benchmark run, as JSON;
// github.com/vllm-project/guidellm, metadata.version 1 of 0.5 and 2 of later versions). A sweep has
// several benchmarks.
type guideReport struct {
	// Config is that of version 2.
	Config struct {
		Spec struct {
			Backend struct {
				Model string `json:"model"`
			} `json:"backend"`
		} `json:"spec"`
	} `json:"config"`
	Benchmarks []guideBenchmark `json:"benchmarks"`
}

// guideBenchmark is one benchmark.
type guideBenchmark struct {
	Config struct {
		Strategy struct {
			Type           string   `json:"type_"`
			Rate           *float64 `json:"rate"`
			MaxConcurrency *float64 `json:"max_concurrency"`
		} `json:"strategy"`
		Backend struct {
			Model string `json:"model"`
		} `json:"backend"`
	} `json:"config"`
	SchedulerMetrics struct {
		RequestsMade struct {
			Total int `json:"total"`
		} `json:"requests_made"`
	} `json:"scheduler_metrics"`
	Requests struct {
		Successful []guideRequest `json:"successful"`
		Errored    []guideRequest `json:"errored"`
		Incomplete []guideRequest `json:"incomplete"`
	} `json:"requests"`
}

// guideRequest is one request. Times are s since 1970; nil means absent.
type guideRequest struct {
	ID   string `json:"request_id"`
	Info struct {
		Error   *string `json:"error"`
		Timings struct {
			RequestStart        *float64 `json:"request_start"`
			FirstTokenIteration *float64 `json:"first_token_iteration"`
			TokenIterations     int64    `json:"token_iterations"`
			RequestEnd          *float64 `json:"request_end"`
		} `json:"timings"`
	} `json:"info"`
	PromptTokens int64 `json:"prompt_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

func isGuideLLM(h *head) bool {
	return !h.list && h.any("metadata.guidellm_version", "benchmarks.type_", "benchmarks.scheduler_metrics")
}

// readGuideLLM reads a report: a run for each benchmark with requests.
func readGuideLLM(f *file, r *Recording) error {
	var report guideReport
	if err := textio.ReadDocument(f.Name, f, &report); err != nil {
		return err
	}
	if len(report.Benchmarks) == 0 {
		return f.Errorf("benchmarks is missing or empty")
	}
	var words [][]string
	for i := range report.Benchmarks {
		b := &report.Benchmarks[i]
		place := fmt.Sprintf("benchmarks[%d]", i)
		run, err := b.run(&f.Position, place)
		if err != nil {
			return err
		}
		if len(run.Outcomes) == 0 {
			f.Warnf("%s (%s) contains no requests", place, b.Config.Strategy.Type)
			continue
		}
		rate := ""
		if b.Config.Strategy.Rate != nil {
			rate = fmt.Sprintf("qps=%g", *b.Config.Strategy.Rate)
		}
		run.Model = cmp.Or(run.Model, report.Config.Spec.Backend.Model)
		r.Runs = append(r.Runs, run)
		words = append(words, []string{"strategy=" + b.Config.Strategy.Type, rate})
	}
	if len(r.Runs) == 0 {
		return f.Errorf("no benchmark contains requests; GuideLLM keeps them unless sampling is set to 0")
	}
	nameRuns(r.Runs, words)
	return nil
}

// run converts a benchmark to a run; place is its path in the report.
func (b *guideBenchmark) run(p *textio.Position, place string) (*Run, error) {
	r := &Run{Model: b.Config.Backend.Model, Clock: clientClock, Arrivals: true}
	if rate := b.Config.Strategy.Rate; rate != nil && *rate > 0 {
		r.TargetRPS = *rate
	}
	var requests []request
	for _, list := range []struct {
		name     string
		requests []guideRequest
	}{{"successful", b.Requests.Successful}, {"errored", b.Requests.Errored}, {"incomplete", b.Requests.Incomplete}} {
		for i := range list.requests {
			q := &list.requests[i]
			c, err := q.request(p, fmt.Sprintf("%s.requests.%s[%d]", place, list.name, i), list.name)
			if err != nil {
				return nil, err
			}
			requests = append(requests, c)
		}
	}
	if made := b.SchedulerMetrics.RequestsMade.Total; made > len(requests) {
		r.warnf("%d requests were sent but only %d are in the file: times are valid, but a replay has less load", made,
			len(requests))
	}
	if s := b.Config.Strategy; slices.Contains([]string{"synchronous", "concurrent", "throughput"}, s.Type) {
		r.warnf(closedLoopWarning, "the strategy was "+s.Type)
	}
	r.warnStreaming(requests)
	return r, r.setOutcomes(requests, p.Name)
}

// request converts a request of a list; place is its path.
func (q *guideRequest) request(p *textio.Position, place, list string) (request, error) {
	c := newRequest()
	c.ID, c.InputTokens = q.ID, q.PromptTokens
	t := &q.Info.Timings
	c.chunks = t.TokenIterations
	if t.RequestStart == nil {
		return c, p.Errorf("%s.info.timings.request_start is missing", place)
	}
	c.at, c.first, c.last = *t.RequestStart*1e6, inMicros(t.FirstTokenIteration), inMicros(t.RequestEnd)
	if list == "successful" {
		c.complete(q.OutputTokens)
	} else {
		reason := list
		if q.Info.Error != nil {
			reason = *q.Info.Error
		}
		c.GeneratedTokens = q.OutputTokens
		c.fail(reason)
	}
	timings := place + ".info.timings."
	return c, c.check(p, fieldNames{place + ".prompt_tokens", place + ".output_tokens", timings +
		"first_token_iteration", timings + "request_end"})
}
