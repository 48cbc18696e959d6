package summarize

import (
	"blis/pkg/capacity"
	"blis/pkg/cluster"
	"blis/pkg/stream"
	"blis/pkg/workloadstats"
	"errors"
)

// Workload is the description of a workload and its load on a cluster, if one was given.
type Workload struct {
	*workloadstats.Description
	Load *capacity.Load `json:"load,omitempty"`
}

// workloadDoc is a workload as it is read.
type workloadDoc struct {
	builder *workloadstats.Describer
	at      stream.Arrival // buffer
	// cluster is nil unless one was given.
	cluster  *cluster.Config
	document *Workload
}

// startWorkload starts the description of a workload.
func (s *summary) startWorkload(r *stream.Reader) error {
	if s.options.Where.matches != nil {
		return r.Errorf("--where selects outcomes; this is a workload (use blis-gen --where to select a part of it)")
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--fitness", s.options.Fitness != nil}, {"--baseline", len(s.options.Baseline) > 0},
		{"--parent", len(s.options.Parent) > 0}} {
		if flag.given && !s.reference {
			return r.Errorf("%s needs runs; this is a workload, which has no score", flag.name)
		}
	}
	s.workload = &workloadDoc{builder: workloadstats.New()}
	if name := s.options.Cluster; name != nil {
		var err error
		s.workload.cluster, err = cluster.Load(*name, cluster.Options{AllowPaths: s.options.AllowPaths,
			Warn: func(w string) { s.warn("%s", w) }})
		return err
	}
	return nil
}

// addArrival counts the current record if it is selected.
func (s *summary) addArrival(r *stream.Reader) error {
	w := s.workload
	if err := r.Arrival(&w.at); err != nil {
		return err
	}
	s.outcomesSeen++
	if s.options.inTimeRange(*w.at.At()) {
		s.outcomesSelected++
		w.builder.Add(&w.at)
	}
	return nil
}

// finishWorkload completes the description after the last record.
func (s *summary) finishWorkload(r *stream.Reader) (err error) {
	w := s.workload
	s.digest = r.Digest()
	w.document = &Workload{Description: w.builder.Description()}
	if w.cluster == nil {
		return nil
	}
	calls := func(yield func(capacity.Call) bool) {
		w.builder.Calls(func(c workloadstats.Call) bool { return yield(capacity.Call(c)) })
	}
	if w.cluster.Disaggregated() {
		return errors.New("the load over the capacity of a disaggregated deployment is not computed")
	}
	l, err := capacity.Of(w.cluster, calls, w.builder.OfferedUS())
	if err != nil {
		return err
	}
	w.document.Load = l
	if l.Offered == nil {
		s.warn("the load is unknown: the workload has no duration, or the cluster cannot serve any call")
	}
	if l.Unserved > 0 {
		s.warn("%d calls need models that the cluster does not have; the load does not include them", l.Unserved)
	}
	if l.TooLong > 0 {
		s.warn("%d calls are too long for the cluster; the load does not include them", l.TooLong)
	}
	if l.OfferedS > w.document.DurationS {
		s.warn("the load assumes that calls spread over %.0f s, "+
			"the mean duration of sessions if every call took no time", l.OfferedS)
	}
	return nil
}
