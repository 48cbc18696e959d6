// Package gen makes workloads: streams of requests and sessions, sorted by
// arrival, from a specification of clients or from a public trace. It holds one
// of them at a time, however many there are.
package gen

import (
	"context"
	"fmt"
	"io"

	"blis/pkg/stream"
)

// source hands out requests and sessions in the order of their arrival.
type source interface {
	// next fills a with the next one as it stands in the source; io.EOF after the
	// last.
	next(a *stream.Arrival) error
	// accept completes and checks one that next gave and that is kept.
	accept(a *stream.Arrival) error
}

// Run writes the workload that o asks for to out. in is read if o names stdin.
// A fault in o is an error of Options.Validate, one in a spec a *config.Error,
// both before anything is written. A fault in a trace is a *stream.SyntaxError;
// then the stream on out has no end record.
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
	for _, odd := range loaded.spec.warnings() {
		if o.Warn != nil {
			o.Warn(odd)
		}
	}
	header := &stream.Header{Seed: loaded.spec.Seed, SpecDigest: loaded.digest(o.Where), SLOClasses: loaded.classes}
	if err := write(ctx, out, header, m, o); err != nil {
		return err
	}
	if few := m.few(); few != "" && o.Warn != nil {
		o.Warn(few)
	}
	return nil
}

// write writes the whole stream of src.
func write(ctx context.Context, out io.Writer, header *stream.Header, src source, o Options) error {
	header.Stream, header.Tool, header.Version = stream.StreamWorkload, "blis-gen", o.Version
	w := stream.NewWriter(out, o.Plain)
	err := w.Header(header)
	if err == nil {
		err = each(ctx, src, o, w.Arrival)
	}
	if err == nil {
		err = w.End(&stream.End{})
	}
	if err != nil {
		w.Close() // what is written stays readable, and says that it is truncated
		return err
	}
	return w.Close()
}

// pace is after how many requests each looks up from its work.
const pace = 1024

// each hands the arrivals of src that o keeps to yield, at most o.Limit.
func each(ctx context.Context, src source, o Options, yield func(*stream.Arrival) error) error {
	var a stream.Arrival
	kept := Count(0)
	for n := 0; o.Limit == 0 || kept < o.Limit; n++ {
		if n%pace == 0 {
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
		if keep, err := o.keeps(&a); err != nil {
			return err
		} else if !keep {
			continue
		}
		kept++
		if err := src.accept(&a); err != nil {
			return err
		}
		if err := yield(&a); err != nil {
			return err
		}
	}
	return nil
}

// requestID names the request at a position of its source, from 0.
func requestID(position int64) string {
	return fmt.Sprintf("req-%06d", position)
}
