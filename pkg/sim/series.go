package sim

import (
	"slices"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// series writes the state of each deployment at the multiples of an interval, after the other events of that instant,
// and at the end of the run.
type series struct {
	output  *recorder
	every   des.Time
	due     des.Time
	last    des.Time // when the last records were written
	records []stream.Series
	// prefill and decode are the tokens that each deployment had computed then.
	prefill, decode []int64
}

// newSeries adds the series to a run; nil if the options ask for none, or nothing is written.
func newSeries(s *simulation, output *recorder, o *Options) *series {
	if o.Series == nil || output.w == nil {
		return nil
	}
	n := len(s.deployments)
	return &series{output: output, every: o.Series.Time, due: o.Series.Time, records: make([]stream.Series, n),
		prefill: make([]int64, n), decode: make([]int64, n)}
}

func (x *series) hooks() []hook { return []hook{onArrival, onStep, onFinal, onClose} }

func (x *series) observe(s *simulation, h hook, i int32) error {
	switch h { // on onStep nothing: with an observer of it, no replica is ahead of the clock
	case onArrival:
		if m := s.request(i).model; m >= 0 {
			for _, d := range s.models[m].deployments {
				x.records[d].Arrived++
			}
		}
	case onFinal:
		x.ended(s, s.request(i))
	case onClose:
		if s.now > x.last {
			return x.write(s, s.now)
		}
	}
	return nil
}

// ended counts a request that is final.
func (x *series) ended(s *simulation, r *request) {
	if r.replica == missing {
		return
	}
	v := &x.records[s.replicas[r.replica].deployment]
	if r.out.State == stream.StateCompleted {
		v.Completed++
	} else {
		v.Ended++
	}
	if !r.out.FirstTokenUS.IsZero() {
		v.TTFTCount++
		v.TTFTSumUS += int64(r.out.FirstTokenUS - r.out.Began())
	}
}

// advance writes the records that are due before the next event.
func (x *series) advance(s *simulation, next des.Time) error {
	for next != noHorizon && x.due < next && x.due <= s.horizon {
		if err := x.write(s, x.due); err != nil {
			return err
		}
		x.due += x.every
	}
	return nil
}

// write writes a record for each deployment and begins the next interval.
func (x *series) write(s *simulation, at des.Time) error {
	prefill, decode := make([]int64, len(x.records)), make([]int64, len(x.records))
	for i := range s.replicas {
		r := &s.replicas[i]
		v, e := &x.records[r.deployment], r.engine
		stats := e.Stats()
		prefill[r.deployment] += stats.PrefillTokens
		decode[r.deployment] += stats.DecodeTokens
		x.countPhase(s, int32(i), v)
		if s.fleet.isGone(int32(i)) {
			continue
		}
		v.Running, v.Waiting = v.Running+int64(e.Running()), v.Waiting+int64(e.Waiting())
		v.UsedBlocks += int64(e.Cache().Total() - e.Cache().Free())
		v.Blocks += int64(e.Cache().Total())
	}
	for i := range x.records {
		v := &x.records[i]
		v.Kind, v.AtUS, v.Deployment = stream.KindSeries, stream.Micros(at), s.deployments[i].id
		v.PrefillTokens, v.DecodeTokens = prefill[i]-x.prefill[i], decode[i]-x.decode[i]
		for m := range s.router.flow.queues {
			if slices.Contains(s.models[m].deployments, i) {
				v.FlowWaiting = int64(s.router.flow.queues[m].Len())
			}
		}
		if err := x.output.Any(v); err != nil {
			return err
		}
		*v = stream.Series{}
	}
	x.prefill, x.decode, x.last = prefill, decode, at
	return nil
}

// countPhase counts a replica by its phase.
func (x *series) countPhase(s *simulation, i int32, v *stream.Series) {
	p := ready
	if s.fleet != nil {
		p = s.fleet.members[i].phase
	}
	if n := [...]*int64{&v.Provisioning, &v.Loading, &v.Warming, &v.Ready, &v.Draining, nil, &v.Failed}[p]; n != nil {
		*n++
	}
}
