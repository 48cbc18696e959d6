package summarize

import (
	"bytes"
	"encoding/json"

	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Document is the summary for programs: one JSON object with all its keys,
// whatever happened. What is not known is null, [] or "".
type Document struct {
	// Status is ok, or error: then CombinedScore is 0 and Error says why. A workload
	// has no score.
	Status        string   `json:"status"`
	CombinedScore *float64 `json:"combined_score"`
	// Metrics are those of the first run that counts, with all places of the tree;
	// Objectives and Features those of the candidate.
	Metrics    metrics.Whole       `json:"metrics"`
	Objectives map[string]*float64 `json:"objectives"`
	Features   map[string]*float64 `json:"features"`
	Artifacts  Artifacts           `json:"artifacts"`
	// Refs are the streams of the call.
	Refs  []Ref  `json:"refs"`
	Error string `json:"error"`
	// Fitness is how the combined score came about; null where there is none.
	Fitness *fitness.Result `json:"fitness"`
	// Candidates are all that were compared. What stands beside them is of the first.
	Candidates []Candidate      `json:"candidates"`
	Selection  *Selection       `json:"selection"`
	Anomalies  []stream.Anomaly `json:"anomalies"`
	// Workload stands in the place of Metrics where the stream is one.
	Workload *Workload `json:"workload"`
	// Warnings are about the streams, then about the metrics, then about the fitness.
	Warnings []string `json:"warnings"`

	err error // why the status is error
}

// Values of Status.
const (
	statusOK    = "ok"
	statusError = "error"
)

// Artifacts are texts for a language model, each of at most 1,950 characters.
type Artifacts struct {
	Feedback  string `json:"feedback"`
	Score     string `json:"score"`
	Patterns  string `json:"patterns"`
	Worst     string `json:"worst"`
	Anomalies string `json:"anomalies"`
	Headroom  string `json:"headroom"`
}

// Ref is a stream of the call: its Name, and in Role what it was read for: run,
// baseline, parent or workload.
type Ref struct {
	Role string `json:"role"`
	Name string `json:"name"`
	Identity
}

// Candidate is one configuration and its runs, each a scenario.
type Candidate struct {
	Name          string              `json:"name"`
	CombinedScore float64             `json:"combined_score"`
	Error         string              `json:"error"`
	Objectives    map[string]*float64 `json:"objectives"`
	Features      map[string]*float64 `json:"features"`
	// ParetoRank is the front by objectives, 1 the best; null without objectives.
	// Crowding is null at the edges of a front, too.
	ParetoRank *int     `json:"pareto_rank"`
	Crowding   *float64 `json:"crowding"`
	Runs       []Scored `json:"runs"`
}

// Scored is one run of a candidate. Holdout: it counts for nothing. Baseline and
// Parent are the scores of the runs that it is compared with.
type Scored struct {
	Name     string   `json:"name"`
	Score    float64  `json:"score"`
	Error    string   `json:"error"`
	Holdout  bool     `json:"holdout"`
	Baseline *float64 `json:"baseline_score"`
	Parent   *float64 `json:"parent_score"`
	// OverBaseline and OverParent are the intervals of the score less theirs; null
	// where they are not known.
	OverBaseline *Interval `json:"over_baseline"`
	OverParent   *Interval `json:"over_parent"`
}

// Identity says which run this is. Digests are shortened to 12 digits. A recording has
// no seeds, a workload its own alone.
type Identity struct {
	Stream         string  `json:"stream"`
	Tool           string  `json:"tool"`
	Version        string  `json:"version"`
	PolicyDigest   string  `json:"policy_digest,omitempty"`
	ConfigDigest   string  `json:"config_digest,omitempty"`
	SimSeed        *uint64 `json:"sim_seed,omitempty"`
	JitterSeed     *uint64 `json:"jitter_seed,omitempty"`
	WorkloadTool   string  `json:"workload_tool,omitempty"`
	WorkloadSeed   *uint64 `json:"workload_seed,omitempty"`
	SpecDigest     string  `json:"spec_digest,omitempty"`
	WorkloadDigest string  `json:"workload_digest,omitempty"`
}

// Selection says of which Requests, of how many, the metrics are.
type Selection struct {
	Where    string        `json:"where,omitempty"`
	FromUS   stream.Micros `json:"from_us,omitzero"`
	ToUS     stream.Micros `json:"to_us,omitzero"`
	Requests int64         `json:"requests"`
	Of       int64         `json:"of"`
}

// document is what there is to say; err is what ended the reading or the judging.
func (r *analysis) document(err error) *Document {
	d := &Document{Status: statusOK, Objectives: map[string]*float64{}, Features: map[string]*float64{},
		Refs: r.refs(), Candidates: []Candidate{}, Anomalies: []stream.Anomaly{}, Warnings: append([]string{}, r.warnings...)}
	for _, c := range r.candidates {
		d.Candidates = append(d.Candidates, r.candidate(c))
	}
	var first *subject
	if len(r.runs) > 0 {
		first = r.runs[0]
	}
	if len(r.candidates) > 0 {
		c := r.candidates[0]
		first = r.shown(c)
		d.Objectives, d.Features, d.Fitness = d.Candidates[0].Objectives, d.Candidates[0].Features, c.result
		if err == nil {
			err = c.err
		}
	}
	if err != nil {
		return r.fail(d, err)
	}
	d.Warnings = append(append([]string{}, first.warnings...), d.Warnings...)
	d.Selection = first.selection()
	if first.workload != nil {
		d.Workload = first.workload.document
		return d
	}
	score := r.candidates[0].score()
	d.CombinedScore = &score
	raw := *first.raw
	d.Warnings = append(d.Warnings, raw.Warnings...)
	d.Warnings = append(d.Warnings, d.Fitness.Warnings...)
	raw.Warnings = nil
	d.Metrics = metrics.Whole{Raw: &raw}
	if first.chosen == first.seen || first.missed != nil && !r.options.part() {
		d.Anomalies = append(d.Anomalies, first.anomalies...)
	}
	return d
}

// fail makes of d the document of what does not load.
func (r *analysis) fail(d *Document, err error) *Document {
	d.Status, d.CombinedScore, d.Error, d.Fitness = statusError, new(float64), err.Error(), nil
	if r.fitness != nil {
		blank := r.fitness.Blank()
		d.Objectives, d.Features = byName(blank.Objectives), byName(blank.Features)
	}
	d.err = err
	return d
}

func byName(values []fitness.Value) map[string]*float64 {
	m := map[string]*float64{}
	for _, v := range values {
		m[v.Name] = v.Value
	}
	return m
}

func (r *analysis) candidate(c *candidate) Candidate {
	result := c.result
	if result == nil {
		result = r.fitness.Blank()
	}
	x := Candidate{Name: c.name, CombinedScore: c.score(), Objectives: byName(result.Objectives), Features: byName(result.Features)}
	if c.err != nil {
		x.Error = c.err.Error()
	}
	if c.place != nil {
		x.ParetoRank, x.Crowding = &c.place.Rank, c.place.Crowding
	}
	for _, run := range c.runs {
		s := Scored{Name: run.name, Holdout: r.fitness.HeldOut(run.name), Baseline: run.reference("base"), Parent: run.reference("parent")}
		if noise, known := run.noise["base"]; known {
			s.OverBaseline = &noise
		}
		if noise, known := run.noise["parent"]; known {
			s.OverParent = &noise
		}
		if run.err != nil {
			s.Error = run.err.Error()
		} else if run.result != nil {
			s.Score = run.result.Score
		}
		x.Runs = append(x.Runs, s)
	}
	return x
}

// reference is the score of the run that this one is compared with, nil without one.
func (r *subject) reference(tree string) *float64 {
	if r.references[tree] == nil {
		return nil
	}
	return &r.references[tree].Score
}

func (r *analysis) refs() []Ref {
	refs := []Ref{}
	for _, list := range []struct {
		role string
		runs []*subject
	}{{"run", r.runs}, {"baseline", r.baselines}, {"parent", r.parents}} {
		for _, x := range list.runs {
			ref := Ref{Role: list.role, Name: x.name}
			if id := x.identity(); id != nil {
				ref.Identity = *id
			}
			if x.workload != nil {
				ref.Role = stream.StreamWorkload
			}
			refs = append(refs, ref)
		}
	}
	return refs
}

// selection says of which part of the stream the numbers are; nil if of all.
func (s *summary) selection() *Selection {
	o := s.options
	if !o.part() {
		return nil
	}
	part := &Selection{Where: o.Where.src, FromUS: stream.Never, ToUS: stream.Never, Requests: s.chosen, Of: s.seen}
	if o.From.given {
		part.FromUS = o.From.at
	}
	if o.To.given {
		part.ToUS = o.To.at
	}
	return part
}

func (s *summary) identity() *Identity {
	h := s.header
	if h == nil {
		return nil
	}
	id := &Identity{Stream: h.Stream, Tool: h.Tool, Version: h.Version}
	if run := h.Run; run != nil {
		id.PolicyDigest, id.ConfigDigest = stream.ShortDigest(run.Key.Policy), stream.ShortDigest(run.ConfigDigest)
		id.SimSeed, id.JitterSeed, id.WorkloadSeed = &run.Key.SimSeed, &run.Key.JitterSeed, &run.Key.WorkloadSeed
		id.WorkloadTool, id.SpecDigest = run.Workload.Tool, stream.ShortDigest(run.Workload.SpecDigest)
	}
	switch {
	case s.workload != nil:
		id.WorkloadSeed, id.SpecDigest, id.WorkloadDigest = &h.Seed, stream.ShortDigest(h.SpecDigest), stream.ShortDigest(s.digest)
	case s.end != nil:
		id.WorkloadDigest = stream.ShortDigest(s.end.WorkloadDigest)
	}
	return id
}

// encode is the document as JSON.
func (d *Document) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(d)
	return b.Bytes(), err
}
