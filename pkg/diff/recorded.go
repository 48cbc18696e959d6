package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"blis/pkg/recording"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// load reads the stream, of a run all, of a recording what it holds; the requests of
// the latter are kept only when it is known how they are paired. Where the options are
// strict, what is odd about the stream is an error.
func (s *side) load(ctx context.Context) error {
	before := len(s.warnings)
	if err := s.take(ctx); err != nil {
		return err
	}
	if s.options.Strict && len(s.warnings) > before {
		return errors.New(s.warnings[before])
	}
	return nil
}

func (s *side) take(ctx context.Context) error {
	format, path := recording.Split(s.name)
	if format == "" {
		run, err := s.isRun()
		if err != nil {
			return err
		}
		if run {
			return s.read(ctx)
		}
	}
	return s.record(ctx, format, path)
}

// isRun looks at the beginning of a stream. What is neither one of ours nor there
// is left to who reads recordings.
func (s *side) isRun() (bool, error) {
	f, err := s.open(s.name)
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(s.name, "#:") || isFolder(s.name) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	text, done := stream.Decompress(f)
	defer done()
	begin := make([]byte, len(ours))
	n, _ := io.ReadFull(text, begin) // what is wrong shows again
	if string(begin[:n]) != ours[:n] {
		return false, nil
	}
	again, err := s.open(s.name)
	if err != nil {
		return false, err
	}
	defer again.Close()
	r := stream.NewReader(again)
	defer r.Close()
	return !r.Next() || r.Header() == nil || r.Header().Stream != stream.StreamRecording, nil
}

// ours is how streams of ours begin.
const ours = `{"kind":`

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// record reads a recording of one run.
func (s *side) record(ctx context.Context, format, path string) error {
	in := textio.Input{Name: path, Path: path}
	choice, stdin := recording.Stdin(path)
	if stdin {
		path, in.Name = "-", "stdin"
	}
	if info, err := os.Stat(path); stdin || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		f, err := s.open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in.Path, in.Stream = choice, f
	}
	r, err := recording.Read(ctx, in, format)
	if err != nil {
		return err
	}
	switch {
	case len(r.Runs) == 0:
		return fmt.Errorf("%s: holds steps and no requests: nothing to compare", s.name)
	case len(r.Runs) > 1:
		names := r.Names()
		if most := 10; len(names) > most {
			names = append(names[:most:most], "...")
		}
		return fmt.Errorf("%s: holds %d runs; choose one with %s#NAME (have %s)", s.name, len(r.Runs), s.name, strings.Join(names, ", "))
	}
	s.recorded, s.format = r.Runs[0], r.Format
	s.header = &stream.Header{Stream: stream.StreamRecording, Tool: cmp.Or(s.recorded.Engine, r.Format)}
	for _, w := range slices.Concat(r.Warnings, s.recorded.Warnings) {
		s.warn("%s: %s", s.name, w)
	}
	if n := s.options.OutputTokens; n > 0 {
		s.recorded.SetOutputTokens(n)
	} else if odd := s.recorded.OutputCounts(); odd != "" {
		s.warn("%s: %s", s.name, odd)
	}
	if !s.recorded.Arrivals {
		s.warn("%s: does not say when requests came: throughput is not compared, and blocks of requests are in the order of the file", s.name)
	}
	return nil
}

// Values of Pairing.
const (
	byID    = "id"
	byOrder = "order"
	byNone  = "none"
)

// pairRecordings gives the requests of recordings the ids by which they are paired,
// and keeps them. It says how they are paired.
func (c *comparison) pairRecordings() (string, error) {
	a, b := c.sides[0], c.sides[1]
	if c.areRuns() {
		if c.options.OutputTokens > 0 {
			return "", fmt.Errorf("--output-tokens is for recordings, and neither %s nor %s is one", a.name, b.name)
		}
		return "", nil
	}
	if a.recorded == nil {
		a, b = b, a // a is a recording, b one or a run
	}
	b.checkOutputTokens()
	pairing := byNone
	if !c.options.Unpaired {
		pairing = byID
		theirs := b.arrivals()
		switch {
		case common(a.recorded.Outcomes, theirs):
		case inStep(a.recorded.Outcomes, theirs):
			pairing = byOrder
			for i := range a.recorded.Outcomes {
				a.recorded.Outcomes[i].ID = theirs[i].id
			}
		default:
			return "", fmt.Errorf("%s and %s are not of the same requests (%d and %d, without common ids, or of other lengths in the order of arrival); --unpaired compares them as independent",
				a.name, b.name, len(a.recorded.Outcomes), len(theirs))
		}
	}
	for _, s := range c.sides {
		if s.recorded == nil {
			continue
		}
		for i := range s.recorded.Outcomes {
			if err := s.keep(&s.recorded.Outcomes[i]); err != nil {
				return "", fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return pairing, nil
}

// checkOutputTokens warns of a run in which requests have other output lengths than
// the options give a recording of them.
func (s *side) checkOutputTokens() {
	want := s.options.OutputTokens
	if want == 0 || s.recorded != nil {
		return
	}
	other, all := 0, 0
	least, most := int64(0), int64(0)
	for n := range s.requests.n {
		q := s.at(n)
		if q.state != completed {
			continue
		}
		if all == 0 {
			least, most = q.output, q.output
		}
		least, most = min(least, q.output), max(most, q.output)
		if all++; q.output != want {
			other++
		}
	}
	if other > 0 {
		s.warn("--output-tokens %d: %d of %d requests of %s have another output length (%d to %d)", want, other, all, s.name, least, most)
	}
}

// apart is by what factor the time that requests came over may differ between a
// recording and what it is compared with, before that is odd.
const apart = 1.25

// keepPairs leaves out what a recording and the other side do not both have, if any
// of it completed: what is measured of one population says nothing of another.
func (c *comparison) keepPairs() {
	a, b := c.sides[0], c.sides[1]
	if c.options.Unpaired || c.areRuns() {
		return
	}
	var both, done int64
	var span [2]struct{ first, last int64 }
	for n := range int32(len(c.names)) {
		x, y := a.at(n), b.at(n)
		switch {
		case x.state != 0 && y.state != 0:
			for i, at := range []int64{x.arrival, y.arrival} {
				if s := &span[i]; both == 0 {
					s.first, s.last = at, at
				} else {
					s.first, s.last = min(s.first, at), max(s.last, at)
				}
			}
			both++
		case x.state == completed || y.state == completed:
			done++
		}
	}
	if done > 0 {
		c.pairsOnly = true
		c.warn("only the %d requests that are in both are compared: %s has %d, %s %d", both, a.name, a.outcomes, b.name, b.outcomes)
	}
	if a.recorded != nil && !a.recorded.Arrivals || b.recorded != nil && !b.recorded.Arrivals {
		return
	}
	x, y := float64(span[0].last-span[0].first)/1e6, float64(span[1].last-span[1].first)/1e6
	if max(x, y) > apart*min(x, y) {
		c.warn("the same requests came over %.4g s in %s and over %.4g s in %s: are the two of one benchmark?", x, a.name, y, b.name)
	}
}

// arrival is a request as it came.
type arrival struct {
	id    string
	at    int64
	input int64
}

// arrivals are the requests of a side by arrival.
func (s *side) arrivals() []arrival {
	var list []arrival
	if s.recorded != nil {
		for i := range s.recorded.Outcomes {
			o := &s.recorded.Outcomes[i]
			list = append(list, arrival{o.ID, int64(o.ArrivalUS), o.InputTokens})
		}
		return list
	}
	for n := range s.requests.n {
		if q := s.at(n); q.state != 0 {
			list = append(list, arrival{s.names[n], q.arrival, q.input})
		}
	}
	slices.SortStableFunc(list, func(x, y arrival) int { return cmp.Compare(x.at, y.at) })
	return list
}

// common reports whether half of the requests of the smaller list have an id of the
// other's, and the same length.
func common(recorded []stream.Outcome, theirs []arrival) bool {
	length := map[string]int64{}
	for _, t := range theirs {
		length[t.id] = t.input
	}
	n := 0
	for i := range recorded {
		if l, ok := length[recorded[i].ID]; ok && l == recorded[i].InputTokens {
			n++
		}
	}
	return n > 0 && 2*n >= min(len(recorded), len(theirs))
}

// inStep reports whether there are as many requests as in the other list, and nine
// of ten are as long as the one at their place.
func inStep(recorded []stream.Outcome, theirs []arrival) bool {
	if len(recorded) != len(theirs) {
		return false
	}
	n := 0
	for i := range recorded {
		if recorded[i].InputTokens == theirs[i].input {
			n++
		}
	}
	return n > 0 && 10*n >= 9*len(recorded)
}
