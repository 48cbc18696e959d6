package diff

import (
	"bytes"
	"encoding/json"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Values of Document.Status.
const (
	statusSame    = "same"
	statusDiffers = "differs"
)

// Document is the result for programs.
type Document struct {
	Status string   `json:"status"`
	A      Identity `json:"a"`
	B      Identity `json:"b"`
	// Selection says which requests the rest is about; absent where it is all.
	Selection *Selection `json:"selection,omitempty"`
	// Config are the settings that differ.
	Config []Setting `json:"config"`
	// Requests is absent where they are not paired, or a side holds none; Decisions
	// too, and where there are none.
	Requests  *Requests  `json:"requests,omitempty"`
	Decisions *Decisions `json:"decisions,omitempty"`
	// Fidelity is there where one of the two is a recording.
	Fidelity *Fidelity `json:"fidelity,omitempty"`
	// Bootstrap is absent where Metrics have no intervals.
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`
	// Metrics are all numbers of the two trees by their paths.
	Metrics  Metrics  `json:"metrics"`
	Gates    []Gate   `json:"gates,omitempty"`
	Warnings []string `json:"warnings"`

	replicas []string // what those of Metrics are called
}

// Identity says which stream this is; Format is that of a recording. Digests are
// shortened to 12 digits.
type Identity struct {
	Stream         string `json:"stream"`
	Tool           string `json:"tool"`
	Version        string `json:"version"`
	Format         string `json:"format,omitempty"`
	PolicyDigest   string `json:"policy_digest,omitempty"`
	ConfigDigest   string `json:"config_digest,omitempty"`
	WorkloadDigest string `json:"workload_digest,omitempty"`
	Requests       int64  `json:"requests"`
}

// Selection says of which Requests, of how many on either side, the result is.
type Selection struct {
	Where    string `json:"where"`
	Requests int64  `json:"requests"`
	Of       int64  `json:"of"`
}

// name notes what the replicas of the metrics are called.
func (d *Document) name(a, b *metrics.Raw) {
	for i := range max(len(a.Replica), len(b.Replica)) {
		of := a.Replica
		if i >= len(of) {
			of = b.Replica
		}
		d.replicas = append(d.replicas, placeOf(of[i].Deployment, of[i].Index))
	}
}

// decide decides the gates.
func (d *Document) decide(gates []gate) error {
	for _, g := range gates {
		failed, err := g.decide(d.Metrics)
		if err != nil {
			return err
		}
		d.Gates = append(d.Gates, Gate{g.src, failed})
	}
	return nil
}

// differs reports whether anything that was compared is not the same. Regret that
// was asked for on one side only is no difference.
func (d *Document) differs() bool {
	for i := range d.Metrics {
		m := &d.Metrics[i]
		if m.differs() && !(m.Abs == nil && strings.HasPrefix(m.Path, "regret.")) {
			return true
		}
	}
	return len(d.Config) > 0 || d.Requests != nil && d.Requests.Changed+d.Requests.OnlyA+d.Requests.OnlyB > 0 || d.Decisions != nil && d.Decisions.Differ > 0
}

func (s *side) identity() Identity {
	h := s.header
	id := Identity{Stream: h.Stream, Tool: h.Tool, Version: h.Version, Format: s.format, Requests: s.outcomes}
	if run := h.Run; run != nil {
		id.PolicyDigest, id.ConfigDigest = stream.ShortDigest(run.Key.Policy), stream.ShortDigest(run.ConfigDigest)
	}
	if s.end != nil {
		id.WorkloadDigest = stream.ShortDigest(s.end.WorkloadDigest)
		if s.end.Requests != nil {
			id.Requests = s.end.Requests.Offered
		}
	}
	return id
}

// document is what can be rendered.
type document interface{ text() []byte }

// render is the document in that format.
func render(d document, format string) ([]byte, error) {
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
