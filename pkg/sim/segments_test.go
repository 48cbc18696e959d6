package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/internal/reference"
	"blis/pkg/stream"
)

// Prompts in short: segments are an id and a number of tokens.
func TestMergeSegments(t *testing.T) {
	for _, test := range []struct{ name, prompts, want string }{
		{"a chain is one segment", "a3 b4 c5", "a12"},
		{"a branch ends a segment", "a3 b4 c5 d1, a3 b4 e6 f1", "a7 c6, a7 e7"},
		{"an end of a prompt ends a segment", "a3 b4 c5, a3 b4", "a7 c5, a7"},
		{"a longer use of the first one", "a3 b4 c5, a9", "a3 b9, a9"},
		{"the last one has any length", "a3 b4, a3 b2", "a7, a5"},
		{"what follows another length is a branch", "a3 b4 c5, a3 b2 c5", "a7 c5, a5 c5"},
		{"others after another prefix", "x1 a3 b4, y1 a3 c5", "x8, y9"},
		{"media stay", "a3 b4 image9 c5 d6", "a7 image9 c11"},
		{"media in one prompt", "a3 image9 b4, a3 image9 c5", "a3 image9 b4, a3 image9 c5"},
		{"outputs stay", "a3 b4, a3 b4 r0.out5 c6 d7", "a7, a7 r0.out5 c13"},
	} {
		w := workloadOfPrompts(test.prompts)
		w.mergeSegments()
		if got := w.prompts(); got != test.want {
			t.Errorf("%s: %s became %s, not %s", test.name, test.prompts, got, test.want)
		}
	}
}

// Steps that extend the prompts of others, or the beginning of these, have the same tokens as before.
func TestMergeSegmentsOfSessions(t *testing.T) {
	w := workload{{Arrival: stream.Arrival{IsSession: true, Session: stream.Session{Steps: []stream.SessionStep{
		{Prompt: shortSegments("a3 b4 c5 d6"), Extends: stream.NoIndex},
		{Prompt: shortSegments("e1 f2"), Extends: 0},
		{Prompt: shortSegments("g1 h2"), Extends: 0, KeepTokens: 9}, // within c
		{Prompt: shortSegments("b4 i2"), Extends: 0, KeepTokens: 3}, // b is the same as before
	}}}}}
	w = append(w, workloadOfPrompts("a3 b4 k1 l2")...)
	w.mergeSegments()
	s := &w[0].Session
	for k, want := range []string{"a3 b4 c5 d6", "a3 b4 c5 d6 e3", "a3 b4 c2 g3", "a3 b4 i2"} {
		if got := inShort(s.AppendPrompt(nil, k)); got != want {
			t.Errorf("step %d has %s, not %s", k, got, want)
		}
	}
	if got, want := inShort(w[1].Request.Prompt), "a3 b4 k3"; got != want {
		t.Errorf("the request has %s, not %s", got, want)
	}
}

func workloadOfPrompts(text string) (w workload) {
	for i, p := range strings.Split(text, ", ") {
		q := stream.Request{ID: fmt.Sprint("r", i), Prompt: shortSegments(p)}
		w = append(w, recordedArrival{stream.Arrival{Request: q}, int64(i)})
	}
	return w
}

func (w workload) prompts() string {
	var all []string
	for i := range w {
		all = append(all, inShort(w[i].Request.Prompt))
	}
	return strings.Join(all, ", ")
}

func shortSegments(text string) (list []stream.Segment) {
	for _, f := range strings.Fields(text) {
		id := strings.TrimRight(f, "0123456789")
		s := stream.Segment{ID: id}
		if id == stream.MediaImage {
			s.Media = id
		}
		fmt.Sscan(f[len(id):], &s.Tokens)
		list = append(list, s)
	}
	return list
}

func inShort(prompt []stream.Segment) string {
	var all []string
	for _, p := range prompt {
		all = append(all, fmt.Sprint(p.ID, p.Tokens))
	}
	return strings.Join(all, " ")
}

// A run has the same records if segments are merged, also if they were split into short ones before.
func TestMergedSegmentsChangeNothing(t *testing.T) {
	split, merged, extended := 0, 0, 0
	for _, draw := range []func(uint64) (reference.Config, []reference.Request){
		reference.Random, reference.RandomGroups, reference.RandomSessions, reference.RandomRetries,
		reference.RandomRouters, reference.RandomLoRASessions, reference.RandomEncoderSessions,
		reference.RandomSpeculation, reference.RandomDisaggregation, reference.RandomDisaggregationHosts,
		reference.RandomHosts, reference.RandomStorages, reference.RandomTieredRouting, reference.RandomFailures,
		reference.RandomPieces, reference.RandomPipelineSessions, reference.RandomScaling, reference.RandomRanks,
	} {
		for seed := range randomCases(200, 10) {
			c, requests := draw(seed)
			o := testOptions(c)
			o.Trace = "full"
			play := func(lines []byte) (records []string) {
				var out bytes.Buffer
				err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(lines), &out, o)
				must(err)
				records = strings.Split(strings.TrimSpace(out.String()), "\n")
				return records[:len(records)-1] // the last one has the digest of the workload
			}
			lines := workloadOf(requests)
			w, header := readWorkload(lines)
			want := play(lines)
			if seed%2 == 0 {
				split += w.split()
			}
			extended += w.extend()
			if got := play(w.lines(header)); !slices.Equal(got, want) {
				t.Fatalf("seed %d: split segments change the run\n%+v\n%+v", seed, c, requests)
			}
			merged += w.segments()
			w.mergeSegments()
			merged -= w.segments()
			if got := play(w.lines(header)); !slices.Equal(got, want) {
				t.Fatalf("seed %d: merged segments change the run\n%+v\n%+v", seed, c, requests)
			}
		}
	}
	if merged < split/2 || extended == 0 {
		t.Errorf("%d segments were split off, %d were merged; %d steps extend others", split, merged, extended)
	}
}

func readWorkload(lines []byte) (workload, *stream.Header) {
	reader := stream.NewReader(bytes.NewReader(lines))
	defer reader.Close()
	a, header, err := openArrivals(reader)
	must(err)
	f := &recordingFeed{feed: a}
	for {
		if next, _, err := f.next(); next == nil || err != nil {
			must(err)
			return f.workload, header
		}
	}
}

func (w workload) lines(header *stream.Header) []byte {
	var out bytes.Buffer
	to := stream.NewWriter(&out, true)
	must(to.Header(header))
	for i := range w {
		must(to.Arrival(&w[i].Arrival))
	}
	must(to.End(&stream.End{}))
	must(to.Close())
	return out.Bytes()
}

// ownPrompts returns the prompts in the records of requests and steps.
func (w workload) ownPrompts() (all []*[]stream.Segment) {
	for i := range w {
		if !w[i].IsSession {
			all = append(all, &w[i].Request.Prompt)
			continue
		}
		for k := range w[i].Session.Steps {
			all = append(all, &w[i].Session.Steps[k].Prompt)
		}
	}
	return all
}

func (w workload) segments() (n int) {
	for _, p := range w.ownPrompts() {
		n += len(*p)
	}
	return n
}

// split splits segments of text into ones of one to three tokens, and returns how many more there are.
func (w workload) split() (more int) {
	for _, prompt := range w.ownPrompts() {
		var short []stream.Segment
		for _, p := range *prompt {
			if p.Media != "" || strings.HasSuffix(p.ID, ".out") {
				short = append(short, p)
				continue
			}
			for k := int64(0); p.Tokens > 0; k++ {
				n := min(1+k%3, p.Tokens)
				short = append(short, stream.Segment{ID: fmt.Sprint(p.ID, "/", k), Tokens: n})
				p.Tokens -= n
			}
		}
		more += len(short) - len(*prompt)
		*prompt = short
	}
	return more
}

// extend makes steps extend those of their session whose prompts begin with the same segments, and returns how many.
func (w workload) extend() (n int) {
	for i := range w {
		steps := w[i].Session.Steps
		for k := range steps {
			step := &steps[k]
			for from := range k {
				before := w[i].Session.AppendPrompt(nil, from)
				same, tokens := 0, int64(0)
				for same < min(len(before), len(step.Prompt)) && before[same] == step.Prompt[same] {
					tokens += before[same].Tokens
					same++
				}
				if same > 0 {
					step.Extends, step.KeepTokens, step.Prompt = stream.Index(from), tokens, step.Prompt[same:]
					n++
					break
				}
			}
		}
	}
	return n
}
