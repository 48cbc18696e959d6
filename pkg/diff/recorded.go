package diff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/recording"
	"blis/pkg/resample"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// load reads the stream: all of a run, or the contents of a recording, whose requests are
// stored once the pairing is known. With --strict a warning about the stream is an error.
func (s *side) load(ctx context.Context) error {
	before, isRun, err := len(s.warnings), false, error(nil)
	format, path := recording.Split(s.name)
	if format == "" {
		isRun, err = s.isRun()
	}
	switch {
	case err != nil:
	case isRun:
		err = s.read(ctx)
	default:
		err = s.readRecording(ctx, format, path)
	}
	if err == nil && s.options.Strict && len(s.warnings) > before {
		err = errors.New(s.warnings[before])
	}
	return err
}

// isRun reads the start of a stream to distinguish a run from a recording. A file that does not
// exist or is not in our format is left to the reader of recordings.
func (s *side) isRun() (bool, error) {
	f, err := s.open(s.name)
	if err == nil {
		defer f.Close()
	}
	if _, isFile := f.(interface{ IsTables() }); errors.Is(err, fs.ErrNotExist) &&
		strings.ContainsAny(s.name, "#:") || isFolder(s.name) && !isFile {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, release := stream.Decompress(f)
	defer release()
	start := make([]byte, len(streamPrefix))
	n, _ := io.ReadFull(text, start) // the second read reports errors
	if string(start[:n]) != streamPrefix[:n] {
		return false, nil
	}
	whole, err := s.open(s.name)
	if err != nil {
		return false, err
	}
	defer whole.Close()
	r := stream.NewReader(whole)
	defer r.Close()
	return !r.Next() || r.Header() == nil || r.Header().Stream != stream.StreamRecording, nil
}

// streamPrefix is the start of a stream in our format.
const streamPrefix = `{"kind":`

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readRecording reads a recording of one run.
func (s *side) readRecording(ctx context.Context, format, path string) error {
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
		return fmt.Errorf("%s has steps but no requests; there is nothing to compare", s.name)
	case len(r.Runs) > 1:
		names := r.Names()
		if limit := 10; len(names) > limit {
			names = append(names[:limit:limit], "...")
		}
		return fmt.Errorf("%s has %d runs; choose one with %s#NAME (have %s)", s.name, len(r.Runs), s.name,
			strings.Join(names, ", "))
	}
	s.recorded, s.format, s.file = r.Runs[0], r.Format, r.Path
	s.header = &stream.Header{Stream: stream.StreamRecording, Tool: cmp.Or(s.recorded.Engine, r.Format)}
	for _, w := range slices.Concat(r.Warnings, s.recorded.Warnings) {
		s.warn("%s: %s", s.name, w)
	}
	if n := s.options.OutputTokens; n > 0 {
		s.recorded.SetOutputTokens(n)
	} else {
		for _, w := range s.recorded.RepairOutputTokens() {
			s.warn("%s: %s", s.name, w)
		}
	}
	if !s.recorded.Arrivals {
		s.warn("%s has no arrival times: throughput is not compared, and the bootstrap uses the order of the file",
			s.name)
	}
	return nil
}

// Values of Pairing.
const (
	byID    = "id"
	byOrder = "order"
	byNone  = "none"
)

// pair sets the ids of the requests of recordings by which they are paired, and stores the
// requests. It returns how they are paired, "" of two runs.
func (c *comparison) pair() (string, error) {
	a, b := c.sides[0], c.sides[1]
	if c.areRuns() {
		if err := c.checkWorkloads(); err != nil {
			return "", err
		}
		if c.options.OutputTokens > 0 {
			return "", fmt.Errorf("--output-tokens is for recordings; neither %s nor %s is one", a.name, b.name)
		}
		return "", nil
	}
	if a.recorded == nil {
		a, b = b, a // now a is a recording
	}
	b.warnOutputTokens()
	b.warnFitted(a.file)
	pairing := byNone
	if !c.options.Unpaired {
		pairing = byID
		other := b.arrivals()
		switch {
		case shareIDs(a.recorded.Outcomes, other):
		case sameInputLengths(a.recorded.Outcomes, other):
			pairing = byOrder
			for i, j := range pairInOrder(a.recorded.Outcomes, other) {
				a.recorded.Outcomes[i].ID = other[j].ID
			}
		case alignByLength(a.recorded.Outcomes, other):
			pairing = byOrder
		default:
			return "", fmt.Errorf(
				"%s and %s do not have the same requests (%d and %d; ids and lengths by arrival differ); "+
					"--unpaired compares them as independent samples",
				a.name, b.name, len(a.recorded.Outcomes), len(other))
		}
	}
	for _, s := range c.sides {
		if s.recorded == nil {
			continue
		}
		for i := range s.recorded.Outcomes {
			if err := s.storeOutcome(&s.recorded.Outcomes[i]); err != nil {
				return "", fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return pairing, nil
}

// warnFitted warns if the step times of a run were fitted to the recording that it is compared with, by the name of its
// file: such errors are smaller than those of data that no fit has seen.
func (s *side) warnFitted(measured string) {
	if s.header == nil || s.header.Run == nil {
		return
	}
	file := filepath.Base(measured)
	for path, value := range settings(s.header) {
		var source string
		if strings.HasSuffix(path, ".latency.source") && json.Unmarshal(value, &source) == nil &&
			slices.Contains(strings.FieldsFunc(source, func(c rune) bool { return c == ' ' || c == ',' }), file) {
			s.warn("the step times of %s were fitted to %s: errors of data that no fit has seen are larger", s.name,
				file)
			return
		}
	}
}

// warnOutputTokens warns if requests of a run have a different output length than
// --output-tokens sets for its recording.
func (s *side) warnOutputTokens() {
	want := s.options.OutputTokens
	if want == 0 || s.recorded != nil {
		return
	}
	other, all := 0, 0
	low, high := int64(math.MaxInt64), int64(0)
	for n := range int32(s.requests.len) {
		q := s.requests.at(n)
		if q.State != resample.Completed {
			continue
		}
		low, high = min(low, int64(q.Output)), max(high, int64(q.Output))
		if all++; int64(q.Output) != want {
			other++
		}
	}
	if other > 0 {
		s.warn("--output-tokens %d: %d of %d requests of %s have a different output length (%d to %d)",
			want, other, all, s.name, low, high)
	}
}

// maxDurationRatio is the ratio of the arrival durations of a recording and the other
// side above which they are suspicious.
const maxDurationRatio = 1.25

// selectPairs excludes requests that only one of a recording and the other side has, if
// any of them completed: the metrics of different populations are not comparable.
func (c *comparison) selectPairs() {
	a, b := c.sides[0], c.sides[1]
	if c.options.Unpaired || c.areRuns() {
		return
	}
	onOneSide := false
	var arrivals [2][]int64 // of requests on both sides
	for n := range c.ids.len() {
		x, y := a.at(n), b.at(n)
		switch {
		case x.State != 0 && y.State != 0:
			arrivals[0], arrivals[1] = append(arrivals[0], x.Arrival), append(arrivals[1], y.Arrival)
		case x.State == resample.Completed || y.State == resample.Completed:
			onOneSide = true
		}
	}
	onBoth := len(arrivals[0])
	if onOneSide {
		c.pairsOnly = true
		c.warn("only the %d requests on both sides are compared: %s has %d, %s has %d", onBoth, a.name, a.outcomes,
			b.name, b.outcomes)
	}
	if onBoth == 0 || a.recorded != nil && !a.recorded.Arrivals || b.recorded != nil && !b.recorded.Arrivals {
		return
	}
	span := func(arrivals []int64) float64 { return float64(slices.Max(arrivals)-slices.Min(arrivals)) / 1e6 }
	x, y := span(arrivals[0]), span(arrivals[1])
	if max(x, y) > maxDurationRatio*min(x, y) {
		c.warn("the requests arrive within %.4g s in %s and within %.4g s in %s; "+
			"check that both are the same benchmark", x, a.name, y, b.name)
	}
}

// arrivals returns the ids, arrivals and prompt lengths of the requests of a side, by arrival.
func (s *side) arrivals() (list []stream.Outcome) {
	if s.recorded != nil {
		return s.recorded.Outcomes
	}
	for n := range int32(s.requests.len) {
		if q := s.requests.at(n); q.State != 0 {
			o := stream.Outcome{ID: s.ids.name(n), ArrivalUS: stream.Micros(q.Arrival), InputTokens: int64(q.Input)}
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(x, y stream.Outcome) int { return cmp.Compare(x.ArrivalUS, y.ArrivalUS) })
	return list
}

// shareIDs reports whether at least half of the requests of the shorter list have the id
// and length of a request in the other list.
func shareIDs(recorded, theirs []stream.Outcome) bool {
	length := map[string]int64{}
	for i := range theirs {
		length[theirs[i].ID] = theirs[i].InputTokens
	}
	n := 0
	for i := range recorded {
		if l, ok := length[recorded[i].ID]; ok && l == recorded[i].InputTokens {
			n++
		}
	}
	return n > 0 && 2*n >= min(len(recorded), len(theirs))
}

// maxShift is how many places around its own the partner of a request is searched for.
const maxShift = 5

// pairInOrder returns the place in theirs of each recorded request: its own place, or if the input lengths there
// differ, the nearest free one within maxShift with its length. Requests that are sent at almost the same time overtake
// each other.
func pairInOrder(recorded, theirs []stream.Outcome) []int {
	places, used := make([]int, len(recorded)), make([]bool, len(theirs))
	take := func(i, j int) bool {
		if places[i] >= 0 || j < 0 || j >= len(theirs) || used[j] || recorded[i].InputTokens != theirs[j].InputTokens {
			return false
		}
		places[i], used[j] = j, true
		return true
	}
	for i := range places {
		places[i] = -1
		take(i, i)
	}
	for d := 1; d <= maxShift; d++ {
		for i := range places {
			_ = take(i, i-d) || take(i, i+d)
		}
	}
	free := 0
	for i := range places {
		for free < len(used) && used[free] {
			free++
		}
		if places[i] < 0 {
			places[i], used[free] = free, true
		}
	}
	return places
}

// alignByLength pairs lists of which one lacks at most a tenth of the requests of the other, as when a client loses
// results: each recorded request gets the id of the nearest free one with its input length, counted from where
// the request before was found. It changes nothing, and returns false, unless 90 % of the shorter list have partners.
// The others keep their ids.
func alignByLength(recorded, theirs []stream.Outcome) bool {
	shorter, longer := min(len(recorded), len(theirs)), max(len(recorded), len(theirs))
	lost := longer - shorter
	if lost == 0 || 10*lost > longer {
		return false
	}
	places, used := make([]int, len(recorded)), make([]bool, len(theirs))
	shift, found := 0, 0
	for i := range recorded {
		places[i] = -1
		for d := 0; d <= maxShift+lost && places[i] < 0; d++ {
			for _, j := range [2]int{i + shift + d, i + shift - d} {
				if j >= 0 && j < len(theirs) && !used[j] &&
					recorded[i].InputTokens == theirs[j].InputTokens {
					places[i], used[j], shift = j, true, j-i
					found++
					break
				}
			}
		}
	}
	if 10*found < 9*shorter {
		return false
	}
	for i, j := range places {
		if j >= 0 {
			recorded[i].ID = theirs[j].ID
		}
	}
	return true
}

// sameInputLengths reports whether the lists have the same number of requests and at
// least 90 % of the positions the same input length.
func sameInputLengths(recorded, theirs []stream.Outcome) bool {
	if len(recorded) != len(theirs) {
		return false
	}
	n := 0
	for i := range recorded {
		if recorded[i].InputTokens == theirs[i].InputTokens {
			n++
		}
	}
	return n > 0 && 10*n >= 9*len(recorded)
}
