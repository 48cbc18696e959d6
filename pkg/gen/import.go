package gen

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"blis/pkg/record"
)

// maxBuffered is how much of a trace that cannot be rewound is kept in memory
// where it must be read twice.
const maxBuffered = 64 << 20

// runImport writes the workload of a trace.
func runImport(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	format, err := Importers.Get("importer", o.Import.Format)
	if err != nil {
		return err
	}
	if o.BlockSize == 0 {
		o.BlockSize = Count(format.blockSize)
	}
	name := o.Import.File
	if name == "-" {
		name = inputName(in)
	} else {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	header := &record.Header{SpecDigest: o.importDigest()}
	scale := 1.0
	switch {
	case o.TimeScale != 0:
		scale = float64(o.TimeScale)
	case o.Rate != 0:
		again, err := rewindable(in, name)
		if err != nil {
			return err
		}
		in = again
		if scale, err = rateScale(ctx, &trace{rows: format.open(in, int64(o.BlockSize)), name: name, scale: 1}, o); err != nil {
			return err
		}
		if _, err = again.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	t := &trace{rows: format.open(in, int64(o.BlockSize)), name: name, scale: scale, blockSize: int64(o.BlockSize)}
	if err := write(ctx, out, header, t, o); err != nil {
		return err
	}
	for _, odd := range t.oddities() {
		if o.Warn != nil {
			o.Warn(odd)
		}
	}
	return nil
}

// importDigest identifies what is done to a trace; the trace itself is known
// only at its end.
func (o *Options) importDigest() string {
	return record.Digest(struct {
		Import    string `json:"import"`
		TimeScale Factor `json:"time_scale,omitempty"`
		Rate      Factor `json:"rate,omitempty"`
		BlockSize Count  `json:"block_size,omitempty"`
		Limit     Count  `json:"limit,omitempty"`
		Where     string `json:"where,omitempty"`
	}{o.Import.Format, o.TimeScale, o.Rate, o.BlockSize, o.Limit, o.Where.text})
}

// rewindable returns in if it is a regular file, else its content.
func rewindable(in io.Reader, name string) (io.ReadSeeker, error) {
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBuffered+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBuffered {
		return nil, fmt.Errorf("%s: --rate reads the trace twice and keeps at most %d MiB of a pipe; import from a file", name, maxBuffered>>20)
	}
	return bytes.NewReader(data), nil
}

// rateScale reads all of t and returns what to multiply times by so that the
// mean gap of the requests kept is 1/rate.
func rateScale(ctx context.Context, t *trace, o Options) (float64, error) {
	gaps := -1
	first := 0.0
	err := each(ctx, t, o, func(*record.Arrival) error {
		if gaps++; gaps == 0 {
			first = t.us
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if gaps < 1 || t.last == first {
		return 0, fmt.Errorf("%s: --rate needs requests at two different times at least", t.name)
	}
	return float64(gaps) / (t.last - first) * 1e6 / float64(o.Rate), nil
}

// withoutMark leaves out the byte order mark that some programs put before
// UTF-8 text.
func withoutMark(in io.Reader) io.Reader {
	b := bufio.NewReader(in)
	if start, _ := b.Peek(3); string(start) == "\ufeff" {
		b.Discard(3)
	}
	return b
}
