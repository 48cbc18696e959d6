package trace

import (
	"io"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// blis reads our own workloads, so that they can be merged, scaled and filtered.
type blis struct {
	text *textio.Text
	in   *stream.Reader
	// pending says that the record at hand is not handed out yet.
	pending bool
}

func openBLIS(in Input, _ Options) (Reader, error) {
	t, err := in.Open()
	if err != nil {
		return nil, err
	}
	b := &blis{text: t, in: stream.NewReader(t)}
	b.in.Expect(stream.StreamWorkload)
	// The header, if there is one, says which classes there are.
	if b.pending = b.in.Next(); b.pending && b.in.Kind() == stream.KindHeader {
		b.pending = false
	}
	if err := b.in.Err(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Classes are those of the header.
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
			// What counts from the arrival, see Reader.
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
			return 0, b.Errorf("%s records have no place in a workload", b.in.Kind())
		}
	}
	if err := b.in.Err(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// Errorf makes an error about the record at hand.
func (b *blis) Errorf(format string, args ...any) error { return b.in.Errorf(format, args...) }

// Warnings says what was odd.
func (b *blis) Warnings() []string { return b.in.Warnings() }

// Close ends the reading.
func (b *blis) Close() error {
	b.in.Close()
	return b.text.Close()
}
