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
	// Selection describes the selected requests; absent if all are.
	Selection *Selection `json:"selection,omitempty"`
	// Config are the settings that differ.
	Config []Setting `json:"config"`
	// Requests is absent if requests are not paired or a side has none. So is Decisions,
	// also if there are none.
	Requests  *Requests  `json:"requests,omitempty"`
	Decisions *Decisions `json:"decisions,omitempty"`
	// Fidelity is present if one side is a recording.
	Fidelity *Fidelity `json:"fidelity,omitempty"`
	// Bootstrap is absent if Metrics have no intervals.
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`
	// Metrics are all numbers of the two trees by path.
	Metrics  Metrics  `json:"metrics"`
	Gates    []Gate   `json:"gates,omitempty"`
	Warnings []string `json:"warnings"`

	replicas []string // the names of the replicas in Metrics
}

// Identity identifies a stream; Format is that of a recording. Digests are shortened to
// 12 digits.
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

// Selection is the condition and the number of Requests, of those on either side, for
// which it is true.
type Selection struct {
	Where    string `json:"where"`
	Requests int64  `json:"requests"`
	Of       int64  `json:"of"`
}

// setReplicaNames sets the names of the replicas in the metrics.
func (d *Document) setReplicaNames(a, b *metrics.Raw) {
	for i := range max(len(a.Replicas), len(b.Replicas)) {
		of := a.Replicas
		if i >= len(of) {
			of = b.Replicas
		}
		d.replicas = append(d.replicas, replicaName(of[i].Deployment, of[i].Index))
	}
}

// evaluateGates evaluates the gates.
func (d *Document) evaluateGates(gates []gate) error {
	for _, g := range gates {
		failed, err := g.isTrue(d.Metrics)
		if err != nil {
			return err
		}
		d.Gates = append(d.Gates, Gate{g.src, failed})
	}
	return nil
}

// differs reports whether anything that was compared differs. Regret that only one run
// computed is not a difference.
func (d *Document) differs() bool {
	for i := range d.Metrics {
		m := &d.Metrics[i]
		if m.differs() && !(m.Diff == nil && strings.HasPrefix(m.Path, "regret.")) {
			return true
		}
	}
	return len(d.Config) > 0 || d.Requests != nil && d.Requests.Changed+d.Requests.OnlyA+d.Requests.OnlyB > 0 ||
		d.Decisions != nil && d.Decisions.Differ > 0
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

// document is a result that can be rendered.
type document interface{ text() []byte }

// render encodes the document in the format.
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
