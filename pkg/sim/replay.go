package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/stream"
)

// past is a run that was made before. Its reader stands on the header.
type past struct {
	file   *os.File
	reader *stream.Reader
	header *stream.Header
}

// openPast opens the run called name.
func openPast(name string) (*past, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	p := &past{file: f, reader: stream.NewReader(f)}
	p.reader.Expect(stream.StreamRun)
	if !p.reader.Next() {
		err = p.reader.Err()
	} else if p.header = p.reader.Header(); p.header.Run == nil || p.header.Run.Config == nil {
		err = p.reader.Errorf("the header has no run.config: nothing says how the run was made")
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *past) close() {
	p.reader.Close()
	p.file.Close()
}

// config is the configuration in the header, as text.
func (p *past) config() ([]byte, error) { return json.Marshal(p.header.Run.Config) }

// parent is what a run has that comes from another one by other settings: what its
// header says of it, and the workload that the other one had.
type parent struct {
	stream.Parent
	workload stream.Source
}

// check writes p into the header of its child, nil as nil, and says where the
// child has another workload.
func (p *parent) check(child *stream.Header, o *Options) error {
	if p == nil {
		return nil
	}
	child.Run.Parent = &p.Parent
	if child.Run.Workload == p.workload || !o.WhatIf() {
		return nil
	}
	const other = "the workload is not the one of the run: its header has another tool, seed or spec_digest"
	if o.Strict {
		return errors.New(other)
	}
	o.warn(other)
	return nil
}

// WhatIf reports whether a replay changes something, and so is a run of its own.
func (o *Options) WhatIf() bool { return len(o.Set) > 0 || o.Policies != "" }

// replayRun plays a run again, which o.Replay names: to see whether it is the same, or
// with other settings as a run of its own.
func replayRun(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	p, err := openPast(o.Replay)
	if err != nil {
		return err
	}
	defer p.close()
	text, err := p.config()
	if err != nil {
		return err
	}
	if err := o.inherit(p); err != nil {
		return err
	}
	name := "the configuration of " + o.Replay
	if o.WhatIf() {
		c, err := cluster.Parse(name, text, cluster.Options{Bundle: o.Policies, Sets: o.Set, Hardware: o.Hardware, Warn: o.Warn})
		if err != nil {
			return err
		}
		return runLoaded(ctx, c, in, out, o)
	}
	c, err := cluster.Restore(name, text)
	if err != nil {
		return err
	}
	if o.PrintConfig {
		return printConfig(out, c)
	}
	if own := stream.Digest(c); own != p.header.Run.ConfigDigest {
		return p.reader.Errorf("header: run.config_digest is %q, and the digest of run.config is %q: one of them was changed, or another version wrote them", p.header.Run.ConfigDigest, own)
	}
	return p.replay(ctx, c, in, out, o)
}

// inherit takes from the header what the run was made with. In a what-if what the
// call gives comes first, and what asks about decisions is asked anew.
func (o *Options) inherit(p *past) error {
	h := p.header.Run
	free := func(flag string) bool { return !slices.Contains(o.Given, flag) }
	if free("trace") {
		if !slices.Contains(stream.TraceLevels, h.Trace) {
			return p.reader.Errorf("run.trace is %q, and must be one of %q", h.Trace, stream.TraceLevels)
		}
		o.Trace = h.Trace
	}
	if free("itl") {
		o.ITL = h.ITL && !(o.WhatIf() && o.Trace == stream.TraceLevels[0]) // which has no outcomes
	}
	if free("clairvoyant") {
		o.Clairvoyant = h.Clairvoyant
	}
	if free("horizon") {
		o.Horizon = horizonOf(h.HorizonUS)
	}
	if free("seed") {
		o.Seed = h.Key.SimSeed
		if free("jitter-seed") && h.Key.JitterSeed != o.Seed {
			o.JitterSeed = &h.Key.JitterSeed
		}
	}
	if o.WhatIf() {
		o.parent = &parent{stream.Parent{ConfigDigest: h.ConfigDigest, Policy: h.Key.Policy}, h.Workload}
		return nil
	}
	if h.Parent != nil {
		o.parent = &parent{*h.Parent, h.Workload}
	}
	if h.Counterfactual != "" {
		if err := o.Counterfactual.UnmarshalText([]byte(h.Counterfactual)); err != nil {
			return p.reader.Errorf("run.counterfactual %v", err)
		}
	}
	o.CounterfactualHorizon = horizonOf(h.CounterfactualUS)
	return nil
}

// horizonOf is the inverse of Horizon.us.
func horizonOf(us *stream.Micros) *Horizon {
	if us == nil {
		return nil
	}
	return &Horizon{Time: des.Time(*us)}
}

// replay simulates the run again and compares every record as it comes. On out it
// says what was compared; the first difference is the error.
func (p *past) replay(ctx context.Context, c *cluster.Config, in io.Reader, out io.Writer, o Options) error {
	servers, err := serversOf(c, o.jitterSeed())
	if err != nil {
		return err
	}
	if v := p.header.Version; v != o.Version {
		o.warn(fmt.Sprintf("the run was written by version %s, this is %s", v, o.Version))
		o.Version = v // the digest in the end record is of the header, too
	}
	o.Plain = true
	workload := stream.NewReader(in)
	defer workload.Close()
	same := &comparison{run: p.reader}
	err = simulate(ctx, c, servers, workload, same, o)
	if same.err != nil && ctx.Err() == nil {
		return same.explain(workload)
	}
	if err != nil {
		return err
	}
	if p.reader.Next() || p.reader.Err() != nil {
		return p.reader.Err()
	}
	for _, w := range p.reader.Warnings() {
		o.warn(w)
	}
	_, err = fmt.Fprintf(out, "%s: the replay is the same: the header by field, %d records byte for byte%s\n", o.Replay, same.records, same.kinds())
	return err
}

// comparison is a writer of the lines of a plain stream, whole ones at a time, that
// compares them with those of a run. Its first error ends the run that is written.
type comparison struct {
	run *stream.Reader
	err error
	// headed: the header was compared. Of the records behind it there were so many,
	// and so many of each kind.
	headed  bool
	records int64
	counts  []count
}

type count struct {
	kind string
	n    int64
}

func (c *comparison) Write(lines []byte) (int, error) {
	n := len(lines)
	for len(lines) > 0 && c.err == nil {
		end := slices.Index(lines, '\n')
		c.err = c.compare(lines[:end])
		lines = lines[end+1:]
	}
	return n, c.err
}

// compare compares the next line of the run with that of the replay.
func (c *comparison) compare(is []byte) error {
	if c.headed && !c.run.Next() {
		if err := c.run.Err(); err != nil {
			return err
		}
		return c.run.Errorf("the run has ended, and the replay goes on with %s", excerpt(is))
	}
	was := c.run.Bytes()
	if !slices.Equal(was, is) {
		if d := firstDifference(was, is); d != nil && json.Valid(was) {
			return c.run.Errorf("%s: %s", nameOf(is), d)
		}
		if c.headed {
			at := column(was, is)
			return c.run.Errorf("%s: from column %d on it is %s in the run and %s in the replay", nameOf(is), at, excerpt(was[at-1:]), excerpt(is[at-1:]))
		}
	}
	if !c.headed {
		c.headed = true
		return nil
	}
	c.records++
	c.count(c.run.Kind())
	return nil
}

func (c *comparison) count(kind string) {
	i := slices.IndexFunc(c.counts, func(n count) bool { return n.kind == kind })
	if i < 0 {
		i = len(c.counts)
		c.counts = append(c.counts, count{kind: kind})
	}
	c.counts[i].n++
}

// kinds says how many records there were of each kind.
func (c *comparison) kinds() (text string) {
	for i, n := range c.counts {
		between := ", "
		if i == 0 {
			between = " ("
		}
		text += fmt.Sprintf("%s%d %s", between, n.n, n.kind)
	}
	if text != "" {
		text += ")"
	}
	return text
}

// nameOf names a record in words: its kind and whom it is about.
func nameOf(line []byte) string {
	var about struct {
		Kind, ID, Decision, Deployment string
		Replica                        *int
	}
	json.Unmarshal(line, &about)
	switch {
	case about.ID != "":
		return fmt.Sprintf("%s %q", about.Kind, about.ID)
	case about.Kind == stream.KindRegret:
		return fmt.Sprintf("%s of decision %q", about.Kind, about.Decision)
	case about.Replica != nil && about.Deployment != "": // metrics have a list of them
		return fmt.Sprintf("%s of replica %d of %s", about.Kind, *about.Replica, about.Deployment)
	}
	return about.Kind
}

// explain adds to the first difference what may have caused it: another workload, or
// somebody who changed the run.
func (c *comparison) explain(workload *stream.Reader) error {
	all := []error{c.err}
	for c.run.Next() {
	}
	for workload.Next() {
	}
	if end := c.run.End(); end != nil && workload.Err() == nil && workload.Digest() != end.WorkloadDigest {
		all = append(all, fmt.Errorf("the workload is another one: the digest of its lines is %s, of those that the run was fed %s", workload.Digest(), end.WorkloadDigest))
	}
	for _, w := range c.run.Warnings() {
		all = append(all, errors.New(w))
	}
	return errors.Join(all...)
}
