package diff

import (
	"encoding/json"
	"io"
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
	for _, r := range a.Replicas {
		d.replicas = append(d.replicas, replicaName(r.Deployment, r.Index))
	}
	for i, n := range replicaNumbers(a, b) {
		if r := &b.Replicas[i]; n == len(d.replicas) {
			d.replicas = append(d.replicas, replicaName(r.Deployment, r.Index))
		}
	}
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

// write writes a result in the format.
func write(out io.Writer, result interface{ text() []byte }, format string) error {
	if format == "json" {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(result)
	}
	_, err := out.Write(result.text())
	return err
}
