package trace

import (
	"io"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// serveGen draws from the client pools of ServeGen (github.com/alibaba/ServeGen,
// data/CATEGORY/MODEL): a folder, or an archive of it, with two files for each
// client N. chunk-N-trace.csv says for each window of time how often its
// requests come and how their gaps are distributed; chunk-N-dataset.json says
// for longer windows how long they are. The pool ends with its last window.
//
// A client is a renewal process in the time in which its rate is 1: a gap is
// drawn with the pattern and the cv of the window in which it begins, and is
// stretched by the rate of each window that it goes through. (The two last
// columns are the parameters that ServeGen fitted; their cv is not always the
// cv that was measured, which is the one used.) Lengths are drawn from the
// window's own values; those of images, audio and video, one for each, are part
// of the prompt. reason_ratio is left aside: output_tokens holds the reasoning.
//
// Each client draws from streams of its own, so that it makes the same requests
// in any company. The tenant is pool/N.
type serveGen struct {
	textio.Position
	clients []*poolClient
}

func openServeGen(in Input, o Options) (Reader, error) {
	s := &serveGen{Position: textio.Position{Name: in.Name}}
	pool, err := readPool(in)
	if err != nil {
		return nil, err
	}
	var warnings []string
	if s.clients, warnings, err = pool.clients(o.Seed); err != nil {
		return nil, err
	}
	s.Warn(warnings...)
	for _, c := range s.clients {
		c.advance()
	}
	return s, nil
}

// Next fills a with the earliest request of all clients, at the same time by
// their order.
func (s *serveGen) Next(a *stream.Arrival) (float64, error) {
	var first *poolClient
	for _, c := range s.clients {
		if !c.done() && (first == nil || c.at < first.at) {
			first = c
		}
	}
	if first == nil {
		return 0, io.EOF
	}
	r := request(a)
	r.Tenant = first.name
	first.draw(r)
	us := first.at * 1e6
	first.advance()
	return us, nil
}

// Close has nothing to close.
func (s *serveGen) Close() error { return nil }

// poolClient is one client at work.
type poolClient struct {
	name    string
	windows []window
	lengths []lengths
	// at is when its next request comes, in s, in windows[now], with lengths[long].
	at                        float64
	window, lengthsIndex      int
	arrivals, inputs, outputs *rand.Rand
}

// window is a time of one rate, in requests per second, and one distribution of
// gaps, of mean 1. Without gaps nothing comes.
type window struct {
	start, end, rate float64
	gaps             *dist.Gaps
}

// lengths are those of requests from start on: of the parts of the prompt, and
// of the answer.
type lengths struct {
	start  float64
	input  []tokenKind
	output empirical
}

// tokenKind is one kind of token in prompts: of so many things (of one, if number is
// empty) so many tokens each.
type tokenKind struct{ tokens, count empirical }

// done reports whether the client makes no more requests.
func (c *poolClient) done() bool { return c.window == len(c.windows) }

// advance moves to the next request.
func (c *poolClient) advance() {
	gap := -1.0 // in means; drawn in the first window with a rate
	for ; c.window < len(c.windows); c.window++ {
		w := &c.windows[c.window]
		c.at = max(c.at, w.start)
		if w.gaps == nil || w.rate <= 0 {
			continue
		}
		if gap < 0 {
			gap = w.gaps.Draw(c.arrivals)
		}
		if room := (w.end - c.at) * w.rate; gap > room {
			gap -= room
			continue
		}
		c.at += gap / w.rate
		break
	}
	for c.lengthsIndex+1 < len(c.lengths) && c.lengths[c.lengthsIndex+1].start <= c.at {
		c.lengthsIndex++
	}
}

// draw draws the lengths of the request at hand. An image without text is a
// prompt, too; a request of no tokens is made one of one.
func (c *poolClient) draw(r *stream.Request) {
	l := &c.lengths[c.lengthsIndex]
	for _, p := range l.input {
		number := int64(1)
		if len(p.count.values) > 0 {
			number = p.count.draw(c.inputs)
		}
		for range number {
			r.InputTokens += p.tokens.draw(c.inputs)
		}
	}
	r.InputTokens = max(r.InputTokens, 1)
	r.OutputTokens = max(l.output.draw(c.outputs), 1)
}

// streams gives the client its streams of random numbers.
func (c *poolClient) streams(seed uint64) {
	c.arrivals = dist.NewStream(seed, "servegen/"+c.name+"/arrivals")
	c.inputs = dist.NewStream(seed, "servegen/"+c.name+"/input")
	c.outputs = dist.NewStream(seed, "servegen/"+c.name+"/output")
}
