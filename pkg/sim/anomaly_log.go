package sim

import (
	"blis/pkg/anomaly"
	"blis/pkg/stream"
)

// anomalyLog detects anomalies and writes them.
type anomalyLog struct {
	detect      anomaly.Detector
	found       []*anomaly.Episode // not yet written
	types       []string           // of all that were found
	deployments []string
}

func newAnomalyLog(s *simulation) *anomalyLog {
	l := &anomalyLog{}
	l.detect = anomaly.New(func(e *anomaly.Episode) { l.found = append(l.found, e) })
	for i := range s.deployments {
		l.deployments = append(l.deployments, s.deployments[i].id)
	}
	return l
}

// write writes the anomalies found since the last call, unless w is nil.
func (l *anomalyLog) write(w *stream.Writer, places []place) error {
	for _, e := range l.found {
		l.types = append(l.types, e.Type)
		if w == nil {
			continue
		}
		a := stream.Anomaly{Kind: stream.KindAnomaly, Type: e.Type, StartUS: stream.Micros(e.Start),
			EndUS: stream.Micros(e.End), Severity: e.Severity, Count: e.Count, RequestIDs: e.Requests,
			Replica: stream.NoIndex, SLOClass: e.Class, Text: e.Text}
		if a.RequestIDs == nil {
			a.RequestIDs = []string{}
		}
		if e.OfDeployment {
			a.Deployment = l.deployments[e.Deployment]
		}
		if e.Replica != anomaly.NoReplica {
			a.Deployment, a.Replica = places[e.Replica].deployment, places[e.Replica].replica
		}
		if err := w.Any(&a); err != nil {
			return err
		}
	}
	l.found = l.found[:0]
	return nil
}
