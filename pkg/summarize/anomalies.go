package summarize

import (
	"fmt"

	"blis/pkg/stream"
)

// addAnomaly adds the current record.
func (s *summary) addAnomaly(r *stream.Reader) error {
	a := stream.Anomaly{Replica: stream.NoIndex}
	if err := r.Decode(&a); err != nil {
		return err
	}
	s.anomalies = append(s.anomalies, a)
	if s.narrative != nil {
		s.insight.Anomaly(&a)
	}
	return nil
}

// appendAnomalies appends a line for each anomaly of the run. Anomalies of a part of a
// run are unknown.
func (d *Document) appendAnomalies(b []byte) []byte {
	if len(d.Anomalies) == 0 {
		return b
	}
	b = append(b, "\nanomalies, by end time\n"...)
	for i := range d.Anomalies[:min(len(d.Anomalies), maxRows)] {
		b = fmt.Appendf(b, "  %s\n", anomalyText(&d.Anomalies[i]))
	}
	if more := len(d.Anomalies) - maxRows; more > 0 {
		b = fmt.Appendf(b, "... and %d more: --format json\n", more)
	}
	return b
}

// anomalyText describes an anomaly on one line.
func anomalyText(a *stream.Anomaly) string {
	where := ""
	switch {
	case !a.Replica.IsZero():
		where = fmt.Sprintf(" at %s/%d", a.Deployment, a.Replica)
	case a.SLOClass != "":
		where = " of " + a.SLOClass
	}
	return fmt.Sprintf("%s, %.3f to %.3f s, severity %.2f: %s", stream.Printable(a.Type+where), float64(a.StartUS)/1e6,
		float64(a.EndUS)/1e6, a.Severity, stream.Printable(a.Text))
}
