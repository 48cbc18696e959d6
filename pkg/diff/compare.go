package diff

import (
	"cmp"
	"context"
	"fmt"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// compare reads two streams and compares them.
func compare(ctx context.Context, c *comparison, streams []string) (*Document, error) {
	if err := c.read(ctx, streams...); err != nil {
		return nil, err
	}
	return c.document(ctx)
}

// read reads both streams.
func (c *comparison) read(ctx context.Context, streams ...string) error {
	for i, name := range streams {
		c.sides[i] = &side{name: name, comparison: c}
		if err := c.sides[i].load(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pair pairs the requests of the two sides and returns how they were paired.
func (c *comparison) pair() (pairing string, err error) {
	if err := c.checkWorkloads(); err != nil {
		return "", err
	}
	return c.pairRecordings()
}

// checkWorkloads returns an error if the two runs had different requests.
func (c *comparison) checkWorkloads() error {
	a, b := c.sides[0], c.sides[1]
	if c.options.Unpaired || a.end == nil || b.end == nil {
		return nil
	}
	if x, y := a.end.WorkloadDigest, b.end.WorkloadDigest; x != y || x == "" {
		return fmt.Errorf("%s and %s have different workloads (%s and %s); "+
			"--unpaired compares them as independent samples", a.name, b.name,
			cmp.Or(stream.ShortDigest(x), "unknown"), cmp.Or(stream.ShortDigest(y), "unknown"))
	}
	return nil
}

// document compares the two sides after they were read.
func (c *comparison) document(ctx context.Context) (*Document, error) {
	a, b := c.sides[0], c.sides[1]
	pairing, err := c.pair()
	if err != nil {
		return nil, err
	}
	selection, err := c.selection()
	if err != nil {
		return nil, err
	}
	d := &Document{A: a.identity(), B: b.identity(), Selection: selection, Config: []Setting{}}
	if a.outcomes > 0 && b.outcomes > 0 && !c.options.Unpaired {
		d.Requests = c.compareRequests(c.byArrival(a, b))
	}
	if err := c.computeMetrics(ctx); err != nil {
		return nil, err
	}
	if c.areRuns() {
		d.Config = c.compareSettings()
	}
	var intervals map[string]stat.Interval
	if a.outcomes > 0 && b.outcomes > 0 {
		if c.options.Progress != nil {
			c.options.Progress("comparing")
		}
		if !c.options.Unpaired && c.areRuns() {
			if d.Decisions, err = c.compareDecisions(ctx); err != nil {
				return nil, err
			}
		}
		d.Bootstrap, intervals = c.bootstrap()
	}
	d.Metrics = compareMetrics(a.raw, b.raw, intervals)
	d.Fidelity = c.fidelity(pairing, d.Metrics)
	d.setReplicaNames(a.raw, b.raw)
	if err := d.evaluateGates(c.options.gates); err != nil {
		return nil, err
	}
	d.Status = statusSame
	if d.differs() {
		d.Status = statusDiffers
	}
	d.Warnings = append([]string{}, c.warnings...)
	return d, nil
}

// areRuns reports whether neither side is a recording.
func (c *comparison) areRuns() bool { return c.sides[0].recorded == nil && c.sides[1].recorded == nil }

// selection describes the selected part of the requests, nil if all are selected. It is
// an error if none is.
func (c *comparison) selection() (*Selection, error) {
	if c.options.selects == nil {
		return nil, nil
	}
	s := &Selection{Where: c.options.Where, Of: int64(len(c.names))}
	for n := range c.names {
		if c.isSelected(int32(n)) {
			s.Requests++
		}
	}
	if s.Requests == 0 && s.Of > 0 {
		return nil, fmt.Errorf("--where: %s is true for none of the %d requests", s.Where, s.Of)
	}
	return s, nil
}
