package summarize

import (
	"blis/pkg/capacity"
	"blis/pkg/cluster"
	"blis/pkg/stream"
	"blis/pkg/workloadstats"
)

// Workload is the description of a workload, and how much of a cluster it takes
// if one was named.
type Workload struct {
	*workloadstats.Description
	Load *capacity.Load `json:"load,omitempty"`
}

// workloadDoc is a workload as it is read.
type workloadDoc struct {
	builder *workloadstats.Describer
	at      stream.Arrival // memory
	// cluster is nil unless one was named.
	cluster  *cluster.Config
	document *Workload
}

// startWorkload begins to describe the stream, which is a workload.
func (s *summary) startWorkload(r *stream.Reader) error {
	if s.options.Where.matches != nil {
		return r.Errorf("--where is about outcomes; this is a workload (blis-gen --where keeps a part of one)")
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--fitness", s.options.Fitness != nil}, {"--baseline", len(s.options.Baseline) > 0}, {"--parent", len(s.options.Parent) > 0}} {
		if flag.given && !s.reference {
			return r.Errorf("%s is about runs; this is a workload, which has no score", flag.name)
		}
	}
	s.workload = &workloadDoc{builder: workloadstats.New()}
	if name := s.options.Cluster; name != nil {
		var err error
		s.workload.cluster, err = cluster.Load(*name, cluster.Options{Warn: func(w string) { s.warn("%s", w) }})
		return err
	}
	return nil
}

// addArrival counts the record at hand if the options ask for it.
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

// finishWorkload settles the description after the last record.
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
	l, err := capacity.Of(w.cluster, calls, w.builder.OfferedUS())
	if err != nil {
		return err
	}
	w.document.Load = l
	if l.Offered == nil {
		s.warn("there is no load: no time passes, or the cluster can serve no call")
	}
	if l.Unserved > 0 {
		s.warn("%d calls ask for models that the cluster does not have, and are not in the load", l.Unserved)
	}
	if l.TooLong > 0 {
		s.warn("%d calls are too long for the cluster, and are not in the load", l.TooLong)
	}
	if l.OfferedS > w.document.DurationS {
		s.warn("the calls are taken to be spread over %.0f s, as long as sessions last in the mean, were all calls answered at once", l.OfferedS)
	}
	return nil
}
