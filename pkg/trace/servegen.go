package trace

import (
	"io"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// serveGen draws from the client pools of ServeGen (github.com/alibaba/ServeGen,
// data/CATEGORY/MODEL): a folder, or an archive of it, with two files for each client N.
// chunk-N-trace.csv has the rate and the distribution of gaps in each time window;
// chunk-N-dataset.json has the length distributions in longer windows. The pool ends with its last
// window.
//
// A client is a renewal process in rescaled time with rate 1: a gap is drawn with the pattern and
// the cv of the window in which it begins, and scaled by the rate of each window that it crosses.
// (The last two columns are parameters that ServeGen fitted; their cv can differ from the measured
// cv, which is used here.) Lengths are drawn from the values of the window. The tokens of images,
// audio and video, one length for each, are part of the prompt. reason_ratio is ignored because
// output_tokens includes the reasoning.
//
// Each client draws from its own random streams, so other clients do not affect it. The tenant is
// pool/N.
type serveGen struct {
	textio.Position
	clients []*poolClient
}

func openServeGen(in Input, o Options) (Reader, error) {
	pool, err := readPool(in)
	if err != nil {
		return nil, err
	}
	clients, err := pool.clients(o.Seed)
	if err != nil {
		return nil, err
	}
	for _, c := range clients {
		c.advance()
	}
	return &serveGen{pool.Position, clients}, nil
}

// Next sets a to the earliest request of all clients; ties are in their order.
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

// poolClient generates the requests of one client.
type poolClient struct {
	name    string
	windows []window
	lengths []lengths
	// at is the time of its next request, in s, which is in windows[window] and
	// lengths[lengthsIndex].
	at                        float64
	window, lengthsIndex      int
	arrivals, inputs, outputs *rand.Rand
}

// window is an interval with one rate, in requests per second, and one distribution of gaps with
// mean 1. Without gaps there are no arrivals.
type window struct {
	start, end, rate float64
	gaps             dist.Gaps
}

// lengths holds the length distributions from start on: of the parts of the prompt and of the
// output.
type lengths struct {
	start  float64
	input  []tokenKind
	output empirical
}

// tokenKind is one kind of tokens in prompts: count items (one if count is empty) of tokens each.
type tokenKind struct{ tokens, count empirical }

// done reports whether the client makes no more requests.
func (c *poolClient) done() bool { return c.window == len(c.windows) }

// advance moves to the next request.
func (c *poolClient) advance() {
	gap := -1.0 // in units of the mean; drawn in the first window with a rate
	for ; c.window < len(c.windows); c.window++ {
		w := &c.windows[c.window]
		c.at = max(c.at, w.start)
		if w.gaps == nil || w.rate <= 0 {
			continue
		}
		if gap < 0 {
			gap = w.gaps(c.arrivals)
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

// draw draws the lengths of the current request. A prompt may consist of images only; empty lengths
// become 1.
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
