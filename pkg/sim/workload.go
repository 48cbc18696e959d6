package sim

import (
	"context"
	"io"

	"blis/pkg/cluster"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Workload is a workload in memory, which any number of runs can read, also at once.
type Workload struct {
	arrivals workload
	header   *stream.Header // nil if it has none
	sum      string
	notes    []string
	// Requests is the number of requests, those of sessions included.
	Requests int64
}

// ReadWorkload reads a workload to its end. An error in it is a *stream.SyntaxError.
func ReadWorkload(in io.Reader) (*Workload, error) {
	reader := stream.NewReader(in)
	defer reader.Close()
	a, header, err := openArrivals(reader)
	if err != nil {
		return nil, err
	}
	defer a.close()
	w := &Workload{header: header}
	if a != nil {
		if w.arrivals, w.Requests, err = readAll(a); err != nil {
			return nil, err
		}
	}
	w.sum, w.notes = reader.Digest(), reader.Warnings()
	return w, nil
}

// Digest is that of the stream.
func (w *Workload) Digest() string { return w.sum }

// Arrivals is the number of requests and sessions that arrive.
func (w *Workload) Arrivals() int { return len(w.arrivals) }

// sharedFeed is the feed of a run on a Workload.
type sharedFeed struct {
	*memoryFeed
	of *Workload
}

func (f sharedFeed) digest() string     { return f.of.sum }
func (f sharedFeed) warnings() []string { return f.of.notes }

// Case is one run on a Workload. Any number of cases may run at once.
type Case struct {
	// Header is that of the run. With the digest of the workload it determines the bytes of the run.
	Header   *stream.Header
	workload *Workload
	cluster  *cluster.Config
	options  Options
}

// Case returns the run on c, a loaded cluster, with these options. Several cases may share c.
func (w *Workload) Case(c *cluster.Config, o Options) *Case {
	return &Case{runHeader(c, w.header, o), w, c, o}
}

// Write simulates and writes to out the same bytes as Run on the stream of the workload. It returns the metrics.
func (k *Case) Write(ctx context.Context, out io.Writer) (*metrics.Record, error) {
	specs, err := k.prepare()
	if err != nil {
		return nil, err
	}
	return write(ctx, k.cluster, specs, k.feed(), k.Header, out, k.options)
}

// Evaluate simulates and returns the same metrics as Write. It is faster, since it makes no records of requests.
func (k *Case) Evaluate(ctx context.Context) (*metrics.Record, error) {
	if k.options.Counterfactual.enabled() {
		return k.Write(ctx, io.Discard)
	}
	specs, err := k.prepare()
	if err != nil {
		return nil, err
	}
	return play(ctx, k.cluster, specs, k.feed(), k.Header, nil, k.options)
}

func (k *Case) prepare() ([]replicaSpec, error) {
	specs, err := k.options.prepare(k.cluster)
	if err != nil {
		return nil, err
	}
	return specs, k.options.check(k.cluster)
}

func (k *Case) feed() source { return sharedFeed{k.workload.arrivals.feed(), k.workload} }

// SLOClasses are those of the workload.
func (w *Workload) SLOClasses() []stream.SLOClass {
	if w.header == nil {
		return nil
	}
	return w.header.SLOClasses
}
