// Package gen generates workloads: streams of requests and sessions, sorted by arrival, from a
// specification of clients or from public traces. It holds one arrival in memory at a time,
// whatever the length of the workload.
package gen

import (
	"context"
	"fmt"
	"io"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// source yields requests and sessions in order of arrival.
type source interface {
	// next sets a to the next arrival, unchanged from the source; io.EOF after the last.
	next(a *stream.Arrival) error
	// accept finishes and validates an arrival that next returned and the filters kept.
	accept(a *stream.Arrival) error
}

// Run writes the workload selected by o to out. It reads in if o names stdin. An invalid option is
// an error of Options.Validate and an invalid spec a *strictyaml.Error; both occur before anything
// is written. An invalid trace is a *stream.SyntaxError; then the stream on out has no end record.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	switch {
	case o.List != "":
		return list(out, o.List)
	case o.PrintSpec:
		return printSpec(in, out, o)
	case len(o.Import) > 0:
		return runImport(ctx, in, out, o)
	}
	return runSpec(ctx, in, out, o)
}

// runSpec writes the workload of a spec.
func runSpec(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	loaded, err := loadSpec(in, o)
	if err != nil {
		return err
	}
	m, err := newMerge(loaded.spec, loaded.clients)
	if err != nil {
		return err
	}
	o.warn(loaded.spec.warnings()...)
	header := &stream.Header{Seed: loaded.spec.Seed, SpecDigest: loaded.digest(&o),
		SLOClasses: o.classes(loaded.classes)}
	var src source = m
	if o.TimeScale != 0 {
		src = &scaledTimes{m, float64(o.TimeScale)}
	}
	if err := write(ctx, out, header, src, o); err != nil {
		return err
	}
	if few := m.shortfall(); few != "" {
		o.warn(few)
	}
	return nil
}

// scaledTimes multiplies the arrival times of a source. Filters see the times of the source.
type scaledTimes struct {
	source
	scale float64
}

func (s *scaledTimes) accept(a *stream.Arrival) error {
	if err := s.source.accept(a); err != nil {
		return err
	}
	before, end := *a.At(), endTime(a)
	at, err := dist.Micros(float64(before) * s.scale)
	if err != nil {
		return fmt.Errorf("--time-scale %v: %w", s.scale, err)
	}
	*a.At() = stream.Micros(at)
	if *end != stream.Never {
		*end += stream.Micros(at) - before
	}
	return nil
}

// write writes the whole stream of src.
func write(ctx context.Context, out io.Writer, header *stream.Header, src source, o Options) error {
	if o.Export != "" {
		return export(ctx, out, src, o)
	}
	header.Stream, header.Tool, header.Version = stream.StreamWorkload, "blis-gen", o.Version
	header.Shard = o.shard()
	w := stream.NewWriter(out, o.Plain)
	err := w.Header(header)
	if err == nil {
		err = forEachArrival(ctx, src, o, func(a *stream.Arrival) error {
			if !o.inShard(a) {
				return nil
			}
			return w.Arrival(a)
		})
	}
	if err == nil {
		o.warnUnusedSLO()
		err = w.End(&stream.End{})
	}
	if err != nil {
		w.Close() // what was written stays readable and is marked as truncated
		return err
	}
	return w.Close()
}

// progressInterval is the number of arrivals between reports of progress and checks for
// cancellation.
const progressInterval = 1024

// forEachArrival calls yield with the arrivals of src that o keeps, at most o.Limit.
func forEachArrival(ctx context.Context, src source, o Options, yield func(*stream.Arrival) error) error {
	var a stream.Arrival
	count := Count(0)
	for n := 0; o.Limit == 0 || count < o.Limit; n++ {
		if n%progressInterval == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if o.Progress != nil && n > 0 {
				o.Progress(fmt.Sprintf("%d arrivals, up to %.0f s", n, float64(*a.At())/1e6))
			}
		}
		err := src.next(&a)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		o.classify(&a)
		if keep, err := o.keeps(&a); err != nil {
			return err
		} else if !keep {
			continue
		}
		count++
		if err := src.accept(&a); err != nil {
			return err
		}
		if err := yield(&a); err != nil {
			return err
		}
	}
	return nil
}
