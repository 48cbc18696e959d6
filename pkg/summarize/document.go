package summarize

import (
	"bytes"
	"encoding/json"

	"blis/pkg/metrics"
	"blis/pkg/record"
)

// Document is the summary for programs.
type Document struct {
	// Status is ok or error; then Error says what is wrong, the score is 0 and
	// Metrics is empty.
	Status        string     `json:"status"`
	CombinedScore *float64   `json:"combined_score,omitempty"`
	Error         string     `json:"error,omitempty"`
	Run           *Identity  `json:"run,omitempty"`
	Selection     *Selection `json:"selection,omitempty"`
	Metrics       any        `json:"metrics"`
	// Anomalies are those of the whole run; absent where Metrics are of a part.
	Anomalies []record.Anomaly `json:"anomalies,omitempty"`
	// Workload stands in the place of Metrics where the stream is one.
	Workload *Workload `json:"workload,omitempty"`
	// Warnings are about the stream, then about the metrics.
	Warnings []string `json:"warnings"`

	raw *metrics.Raw // Metrics; nil on error
}

// Values of Status.
const (
	statusOK    = "ok"
	statusError = "error"
)

// Identity says which run this is. Digests are shortened to 12 digits.
type Identity struct {
	Stream         string `json:"stream"`
	Tool           string `json:"tool"`
	Version        string `json:"version"`
	PolicyDigest   string `json:"policy_digest,omitempty"`
	ConfigDigest   string `json:"config_digest,omitempty"`
	SimSeed        uint64 `json:"sim_seed"`
	JitterSeed     uint64 `json:"jitter_seed"`
	WorkloadTool   string `json:"workload_tool,omitempty"`
	WorkloadSeed   uint64 `json:"workload_seed"`
	SpecDigest     string `json:"spec_digest,omitempty"`
	WorkloadDigest string `json:"workload_digest,omitempty"`
}

// Selection says of which Requests, of how many, the metrics are.
type Selection struct {
	Where    string        `json:"where,omitempty"`
	FromUS   record.Micros `json:"from_us,omitzero"`
	ToUS     record.Micros `json:"to_us,omitzero"`
	Requests int64         `json:"requests"`
	Of       int64         `json:"of"`
}

// document is what there is to say; err is what ended the reading.
func (s *summary) document(err error) *Document {
	d := &Document{Status: statusOK, Run: s.identity(), Metrics: struct{}{}, Warnings: []string{}}
	if err != nil {
		d.Status, d.CombinedScore, d.Error = statusError, new(float64), err.Error()
		return d
	}
	d.Warnings = append(d.Warnings, s.warnings...)
	if s.workload != nil {
		d.Workload = s.workload.document
	} else {
		raw := *s.raw
		d.Warnings = append(d.Warnings, raw.Warnings...)
		raw.Warnings = nil
		d.Metrics, d.raw = &raw, &raw
	}
	if s.chosen == s.seen {
		d.Anomalies = s.anomalies
	}
	if o := s.options; o.part() {
		d.Selection = &Selection{Where: o.Where.src, FromUS: record.Never, ToUS: record.Never, Requests: s.chosen, Of: s.seen}
		if o.From.given {
			d.Selection.FromUS = o.From.at
		}
		if o.To.given {
			d.Selection.ToUS = o.To.at
		}
	}
	return d
}

func (s *summary) identity() *Identity {
	h := s.header
	if h == nil {
		return nil
	}
	id := &Identity{Stream: h.Stream, Tool: h.Tool, Version: h.Version, SimSeed: h.Seed, JitterSeed: h.Seed}
	if run := h.Run; run != nil {
		id.PolicyDigest, id.ConfigDigest = short(run.Key.Policy), short(run.ConfigDigest)
		id.SimSeed, id.JitterSeed, id.WorkloadSeed = run.Key.SimSeed, run.Key.JitterSeed, run.Key.WorkloadSeed
		id.WorkloadTool, id.SpecDigest = run.Workload.Tool, short(run.Workload.SpecDigest)
	}
	switch {
	case s.workload != nil:
		id.WorkloadSeed, id.SpecDigest, id.WorkloadDigest = h.Seed, short(h.SpecDigest), short(s.digest)
	case s.end != nil:
		id.WorkloadDigest = short(s.end.WorkloadDigest)
	}
	return id
}

// short is a digest as people compare it.
func short(digest string) string { return digest[:min(12, len(digest))] }

// render is the document in that format.
func render(d *Document, format string) ([]byte, error) {
	if format != "json" {
		return d.text(), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(d)
	return b.Bytes(), err
}
