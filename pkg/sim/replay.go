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

// originalRun is the run to replay. Its reader is at the header.
type originalRun struct {
	file   *os.File
	reader *stream.Reader
	header *stream.Header
}

// openOriginal opens a run.
func openOriginal(name string) (*originalRun, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	p := &originalRun{file: f, reader: stream.NewReader(f)}
	p.reader.Expect(stream.StreamRun)
	if !p.reader.Next() {
		err = p.reader.Err()
	} else if p.header = p.reader.Header(); p.header.Run == nil || p.header.Run.Config == nil {
		err = p.reader.Errorf("the header has no run.config, so the run cannot be repeated")
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *originalRun) close() {
	p.reader.Close()
	p.file.Close()
}

// parentRun is the run that a what-if derives from: its entry in the header of the what-if, and its
// workload.
type parentRun struct {
	stream.Parent
	workload stream.Source
}

// check writes p into the header of the what-if and reports a different workload. It does nothing if
// p is nil.
func (p *parentRun) check(child *stream.Header, o *Options) error {
	if p == nil {
		return nil
	}
	child.Run.Parent = &p.Parent
	if child.Run.Workload == p.workload || !o.WhatIf() {
		return nil
	}
	const other = "the workload differs from that of the run: its header has a different tool, seed or spec_digest"
	if o.Strict {
		return errors.New(other)
	}
	o.warn(other)
	return nil
}

// WhatIf reports whether a replay changes settings, which makes it a run of its own.
func (o *Options) WhatIf() bool { return len(o.Set) > 0 || o.Policies != "" }

// LoadCluster loads the cluster that o names. An error in it is a *strictyaml.Error.
func (o *Options) LoadCluster() (*cluster.Config, error) { return cluster.Load(o.Cluster, o.cluster()) }

// cluster are the options for loading the cluster.
func (o *Options) cluster() cluster.Options {
	return cluster.Options{PolicyFile: o.Policies, Overrides: o.Set, Hardware: o.Hardware, Operators: o.Operators,
		AllowPaths: o.AllowPaths, Warn: o.Warn}
}

// replayRun repeats the run o.Replay: to verify that it is reproducible, or as a what-if with other
// settings.
func replayRun(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	p, err := openOriginal(o.Replay)
	if err != nil {
		return err
	}
	defer p.close()
	text, err := json.Marshal(p.header.Run.Config)
	if err != nil {
		return err
	}
	if err := o.inherit(p); err != nil {
		return err
	}
	name := "the configuration of " + o.Replay
	if o.WhatIf() {
		c, err := cluster.Parse(name, text, o.cluster())
		if err != nil {
			return err
		}
		return runLoaded(ctx, c, in, out, o)
	}
	c, err := cluster.Restore(name, text)
	if err != nil {
		return err
	}
	if o.prints() {
		return o.print(out, c)
	}
	if digest := stream.Digest(c); digest != p.header.Run.ConfigDigest {
		return p.reader.Errorf("header: run.config_digest is %q, but run.config has the digest %q: "+
			"one was modified or written by a different version", p.header.Run.ConfigDigest, digest)
	}
	return p.replay(ctx, c, in, out, o)
}

// inherit takes the options of the run from its header. In a what-if, options of the call override
// them, and counterfactual options are not inherited.
func (o *Options) inherit(p *originalRun) error {
	h := p.header.Run
	free := func(flag string) bool { return !slices.Contains(o.Given, flag) }
	if free("trace") {
		if !slices.Contains(stream.TraceLevels, h.Trace) {
			return p.reader.Errorf("run.trace is %q; must be one of %q", h.Trace, stream.TraceLevels)
		}
		o.Trace = h.Trace
	}
	if free("itl") {
		o.ITL = h.ITL && !(o.WhatIf() && o.Trace == stream.TraceLevels[0]) // minimal has no outcomes
	}
	if free("series") && h.SeriesUS != nil {
		o.Series = &Interval{Horizon{int64(*h.SeriesUS)}}
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
		o.parent = &parentRun{stream.Parent{ConfigDigest: h.ConfigDigest, Policy: h.Key.Policy}, h.Workload}
		return nil
	}
	if h.Parent != nil {
		o.parent = &parentRun{*h.Parent, h.Workload}
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

// replay repeats the run, compares every record and writes to out what was compared. The first
// difference is the error.
func (p *originalRun) replay(ctx context.Context, c *cluster.Config, in io.Reader, out io.Writer, o Options) error {
	specs, err := replicaSpecs(c, o.jitterSeed())
	if err != nil {
		return err
	}
	if v := p.header.Version; v != o.Version {
		o.warn(fmt.Sprintf("the run was written by version %s; this is version %s", v, o.Version))
		o.Version = v // the digest in the end record covers the header
	}
	o.Plain = true
	workload := stream.NewReader(in)
	defer workload.Close()
	compared := &comparison{run: p.reader, counts: map[string]int64{}}
	err = simulate(ctx, c, specs, workload, compared, o)
	if compared.err != nil && ctx.Err() == nil {
		return compared.explain(workload)
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
	_, err = fmt.Fprintf(out, "%s: the replay is identical: all header fields and every byte of %d records%s\n",
		o.Replay, compared.records, compared.listKinds())
	return err
}

// comparison is a writer for the lines of a plain stream. It compares them with those of a run. Each
// write must consist of complete lines. The first error ends the run being written.
type comparison struct {
	run *stream.Reader
	err error
	// headerCompared: the header was compared. records and counts are the numbers of records after it,
	// in total and by kind; kinds are their kinds in order.
	headerCompared bool
	records        int64
	counts         map[string]int64
	kinds          []string
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
func (c *comparison) compare(replayed []byte) error {
	if c.headerCompared && !c.run.Next() {
		if err := c.run.Err(); err != nil {
			return err
		}
		return c.run.Errorf("the run has ended, but the replay continues with %s", excerpt(replayed))
	}
	original := c.run.Bytes()
	if !slices.Equal(original, replayed) {
		if d := firstDifference(original, replayed); d != "" && json.Valid(original) {
			return c.run.Errorf("%s: %s", describeRecord(replayed), d)
		}
		if c.headerCompared {
			at := 0
			for at < min(len(original), len(replayed)) && original[at] == replayed[at] {
				at++
			}
			return c.run.Errorf("%s: from column %d on the run has %s and the replay has %s",
				describeRecord(replayed), at+1, excerpt(original[at:]), excerpt(replayed[at:]))
		}
	}
	if !c.headerCompared {
		c.headerCompared = true
		return nil
	}
	c.records++
	kind := c.run.Kind()
	if c.counts[kind]++; c.counts[kind] == 1 {
		c.kinds = append(c.kinds, kind)
	}
	return nil
}

// listKinds lists the number of records of each kind.
func (c *comparison) listKinds() (text string) {
	for _, kind := range c.kinds {
		text += fmt.Sprintf(", %d %s", c.counts[kind], kind)
	}
	if text == "" {
		return ""
	}
	return " (" + text[len(", "):] + ")"
}

// describeRecord describes a record for a message: its kind and subject.
func describeRecord(line []byte) string {
	var record struct {
		Kind, ID, Decision, Deployment string
		Replica                        *int
	}
	json.Unmarshal(line, &record)
	switch {
	case record.ID != "":
		return fmt.Sprintf("%s %q", record.Kind, record.ID)
	case record.Kind == stream.KindRegret, record.Kind == stream.KindScalingRegret:
		return fmt.Sprintf("%s of decision %q", record.Kind, record.Decision)
	case record.Replica != nil && record.Deployment != "": // metrics have a list of them
		return fmt.Sprintf("%s of replica %d of %s", record.Kind, *record.Replica, record.Deployment)
	}
	return record.Kind
}

// explain adds possible causes to the first difference: a different workload or a modified run.
func (c *comparison) explain(workload *stream.Reader) error {
	all := []error{c.err}
	for c.run.Next() {
	}
	for workload.Next() {
	}
	if end := c.run.End(); end != nil && workload.Err() == nil && workload.Digest() != end.WorkloadDigest {
		all = append(all, fmt.Errorf("the workload differs: its digest is %s, that of the workload of the run is %s",
			workload.Digest(), end.WorkloadDigest))
	}
	for _, w := range c.run.Warnings() {
		all = append(all, errors.New(w))
	}
	return errors.Join(all...)
}
