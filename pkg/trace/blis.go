package trace

import (
	"io"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// blis reads BLIS workloads, to merge, scale or filter them.
type blis struct {
	text *textio.Text
	in   *stream.Reader
	// pending says that the current record has not been returned yet.
	pending bool
}

func openBLIS(in Input, _ Options) (Reader, error) {
	t, err := in.Open()
	if err != nil {
		return nil, err
	}
	b := &blis{text: t, in: stream.NewReader(t)}
	b.in.Expect(stream.StreamWorkload)
	// The optional header declares the SLO classes.
	if b.pending = b.in.Next(); b.pending && b.in.Kind() == stream.KindHeader {
		b.pending = false
	}
	if err := b.in.Err(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Classes returns the classes of the header.
func (b *blis) Classes() []stream.SLOClass {
	if h := b.in.Header(); h != nil {
		return h.SLOClasses
	}
	return nil
}

func (b *blis) Next(a *stream.Arrival) (float64, error) {
	for b.pending || b.in.Next() {
		b.pending = false
		switch b.in.Kind() {
		case stream.KindRequest, stream.KindSession:
			if err := b.in.Arrival(a); err != nil {
				return 0, err
			}
			// Make times relative to the arrival, see Reader.
			at, until := *a.At(), &a.Request.DeadlineUS
			if a.IsSession {
				until = &a.Session.UntilUS
			}
			if *until != stream.Never {
				*until = max(*until-at, 0)
			}
			return float64(at), nil
		case stream.KindHeader, stream.KindEnd:
		default:
			return 0, b.Errorf("%s records are not valid in a workload", b.in.Kind())
		}
	}
	if err := b.in.Err(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// Errorf makes an error about the current record.
func (b *blis) Errorf(format string, args ...any) error { return b.in.Errorf(format, args...) }

// Warnings reports suspicious content.
func (b *blis) Warnings() []string { return b.in.Warnings() }

// Close ends reading. A read ahead may be pending, so the input is closed after it.
func (b *blis) Close() error {
	b.in.CloseThen(func() { b.text.Close() })
	return nil
}
