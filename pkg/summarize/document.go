package summarize

import (
	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Document is the summary for programs: one JSON object that always has all its keys.
// Unknown values are null, [] or "".
type Document struct {
	// Status is ok or error; with error CombinedScore is 0 and Error is the reason. A
	// workload has no score.
	Status        string   `json:"status"`
	CombinedScore *float64 `json:"combined_score"`
	// Metrics are those of the first run that counts, with all paths of the tree;
	// Objectives and Features those of the candidate.
	Metrics metrics.WithNulls `json:"metrics"`
	// Scores are CombinedScore, Metrics, Objectives and Features by dotted names. Numbers of the whole run are 0 where
	// they are missing, those of groups and replicas are then left out.
	Scores map[string]float64 `json:"scores"`
	// Objectives and Features have a number for each name; a missing objective is -1e12, a missing feature 0.
	Objectives map[string]float64 `json:"objectives"`
	Features   map[string]float64 `json:"features"`
	Artifacts  Artifacts          `json:"artifacts"`
	// Patterns, Regret and Examples are those of the first candidate, as Artifacts.Patterns and Worst.
	Patterns []Pattern `json:"patterns"`
	Regret   Regret    `json:"regret"`
	Examples []Example `json:"examples"`
	// Hints are settings that may remove what the patterns of the first candidate say; see Artifacts.Patterns.
	Hints []attribution.Hint `json:"hints"`
	// ConfigForDeployment is the configuration of the first candidate for real servers and routers.
	ConfigForDeployment Deployment `json:"config_for_deployment"`
	// Refs are the streams that were read.
	Refs  []StreamRef `json:"refs"`
	Error string      `json:"error"`
	// Fitness explains the combined score; null without one.
	Fitness *fitness.Result `json:"fitness"`
	// Candidates are all configurations that were scored. The other fields describe the
	// first.
	Candidates []Candidate      `json:"candidates"`
	Selection  *Selection       `json:"selection"`
	Anomalies  []stream.Anomaly `json:"anomalies"`
	// Workload replaces Metrics if the stream is a workload.
	Workload *Workload `json:"workload"`
	// Integrity is that of the worst stream: ok, filtered (records are missing) or damaged (records were changed).
	Integrity stream.Integrity `json:"integrity"`
	// Warnings concern the streams, then the metrics, then the fitness.
	Warnings []string `json:"warnings"`

	err error // why the status is error
}

// Values of Status.
const (
	statusOK    = "ok"
	statusError = "error"
)

// Artifacts are texts for a language model, each of at most 1,950 characters. Sections that are empty, or part of
// Feedback, are left out.
type Artifacts struct {
	Feedback  string `json:"feedback"`
	Score     string `json:"score,omitempty"`
	Patterns  string `json:"patterns,omitempty"`
	Worst     string `json:"worst,omitempty"`
	Anomalies string `json:"anomalies,omitempty"`
	Headroom  string `json:"headroom,omitempty"`
}

// StreamRef names a stream that was read. Role is its use: run, baseline, parent or
// workload.
type StreamRef struct {
	Role string `json:"role"`
	Name string `json:"name"`
	Identity
}

// Candidate is one configuration and its runs, one for each scenario.
type Candidate struct {
	Name          string             `json:"name"`
	CombinedScore float64            `json:"combined_score"`
	Error         string             `json:"error"`
	Objectives    map[string]float64 `json:"objectives"`
	Features      map[string]float64 `json:"features"`
	// ParetoRank is the index of the Pareto front by objectives, 1 is the best; null
	// without objectives. Crowding is also null at the edges of a front.
	ParetoRank *int       `json:"pareto_rank"`
	Crowding   *float64   `json:"crowding"`
	Runs       []RunScore `json:"runs"`
}

// RunScore is one run of a candidate. A held-out run does not count. BaselineScore and
// ParentScore are the scores of its reference runs.
type RunScore struct {
	Name          string   `json:"name"`
	Score         float64  `json:"score"`
	Error         string   `json:"error"`
	HeldOut       bool     `json:"holdout"`
	BaselineScore *float64 `json:"baseline_score"`
	ParentScore   *float64 `json:"parent_score"`
	// VsBaseline and VsParent compare the score with theirs; null if the interval is
	// unknown.
	VsBaseline *Comparison `json:"vs_baseline"`
	VsParent   *Comparison `json:"vs_parent"`
}

// Comparison is the difference of a run's score from that of a reference run. The
// difference is within noise if CI contains 0.
type Comparison struct {
	Diff float64       `json:"diff"`
	CI   stat.Interval `json:"ci"`
}

// Identity identifies a run. Digests are shortened to 12 digits. A recording has no
// seeds, a workload only its own.
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
	// Shards is the number of runs that were merged, absent if the run is one.
	Shards int64 `json:"shards,omitempty"`
}

// Selection describes the part of the requests that the metrics cover.
type Selection struct {
	Where    string        `json:"where,omitempty"`
	FromUS   stream.Micros `json:"from_us,omitzero"`
	ToUS     stream.Micros `json:"to_us,omitzero"`
	Requests int64         `json:"requests"`
	Of       int64         `json:"of"`
}

// document returns the document; err is what ended reading or scoring.
func (r *analysis) document(err error) *Document {
	_, integrity := r.leastIntact()
	d := &Document{Status: statusOK, Objectives: map[string]float64{}, Features: map[string]float64{},
		Patterns: []Pattern{}, Examples: []Example{}, Refs: r.refs(), Candidates: []Candidate{},
		Anomalies: []stream.Anomaly{}, Hints: []attribution.Hint{},
		Integrity: integrity, Warnings: append([]string{}, r.warnings...),
		ConfigForDeployment: Deployment{Files: map[string]string{}, Errors: map[string]string{}}}
	for _, c := range r.candidates {
		d.Candidates = append(d.Candidates, r.candidate(c))
	}
	var first *runDoc
	if len(r.runs) > 0 {
		first = r.runs[0]
	}
	if len(r.candidates) > 0 {
		c := r.candidates[0]
		first = r.representative(c)
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
		d.Workload, d.Scores = first.workload.document, map[string]float64{}
		return d
	}
	if x := r.worstRun(r.candidates[0]); x.narrative != nil && x.findings != nil {
		d.explain(r.input(r.candidates[0], x), x.findings)
	}
	d.ConfigForDeployment.export(first)
	score := r.candidates[0].score()
	d.CombinedScore = &score
	raw := *first.raw
	d.Warnings = append(d.Warnings, raw.Warnings...)
	d.Warnings = append(d.Warnings, d.Fitness.Warnings...)
	raw.Warnings = nil
	d.Metrics, d.Scores = metrics.WithNulls{Raw: &raw}, d.flatten(&raw)
	if first.outcomesSelected == first.outcomesSeen || first.missedSessions != nil && !r.options.isPartial() {
		d.Anomalies = append(d.Anomalies, first.anomalies...)
	}
	return d
}

// fail turns d into the document of an error.
func (r *analysis) fail(d *Document, err error) *Document {
	d.Status, d.CombinedScore, d.Error, d.Fitness = statusError, new(float64), err.Error(), nil
	if r.fitness != nil {
		blank := r.fitness.Empty()
		d.Objectives, d.Features = byName(blank.Objectives, worstObjective), byName(blank.Features, 0)
	}
	d.Scores = d.flatten(nil)
	d.err = err
	return d
}

func (r *analysis) candidate(c *candidate) Candidate {
	result := c.result
	if result == nil {
		result = r.fitness.Empty()
	}
	x := Candidate{Name: c.name, CombinedScore: c.score(), Objectives: byName(result.Objectives, worstObjective),
		Features: byName(result.Features, 0)}
	if c.err != nil {
		x.Error = c.err.Error()
	}
	if c.pareto != nil {
		x.ParetoRank, x.Crowding = &c.pareto.Rank, c.pareto.Crowding
	}
	for _, run := range c.runs {
		s := RunScore{Name: run.name, HeldOut: r.fitness.HeldOut(run.name)}
		s.BaselineScore, s.VsBaseline = run.references[0].compare(run)
		s.ParentScore, s.VsParent = run.references[1].compare(run)
		if run.err != nil {
			s.Error = run.err.Error()
		} else if run.result != nil {
			s.Score = run.result.Score
		}
		x.Runs = append(x.Runs, s)
	}
	return x
}

// compare returns the score of the reference, nil without one, and how much higher that of
// the run is, nil if the interval of the difference is unknown.
func (f *reference) compare(run *runDoc) (score *float64, difference *Comparison) {
	if f.score == nil {
		return nil, nil
	}
	if f.noise != nil {
		difference = &Comparison{Diff: run.result.Score - f.score.Score, CI: *f.noise}
	}
	return &f.score.Score, difference
}

func (r *analysis) refs() []StreamRef {
	refs := []StreamRef{}
	for _, list := range []struct {
		role string
		runs []*runDoc
	}{{"run", r.runs}, {referenceKinds[0], r.references[0]}, {referenceKinds[1], r.references[1]}} {
		for _, x := range list.runs {
			ref := StreamRef{Role: list.role, Name: x.name}
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

// selection describes the selected part of the stream; nil if it is complete.
func (s *summary) selection() *Selection {
	o := s.options
	if !o.isPartial() {
		return nil
	}
	part := &Selection{Where: o.Where.src, FromUS: stream.Never, ToUS: stream.Never, Requests: s.outcomesSelected,
		Of: s.outcomesSeen}
	if o.From.isSet {
		part.FromUS = o.From.at
	}
	if o.To.isSet {
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
	if s.merged != nil {
		id.Shards = int64(len(s.merged.parts))
	}
	switch {
	case s.workload != nil:
		id.WorkloadSeed, id.SpecDigest, id.WorkloadDigest = &h.Seed, stream.ShortDigest(h.SpecDigest),
			stream.ShortDigest(s.digest)
	case s.end != nil:
		id.WorkloadDigest = stream.ShortDigest(s.end.WorkloadDigest)
	}
	return id
}
