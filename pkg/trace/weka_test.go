package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// sharedTokens is the number of leading tokens that two prompts share according to their segments.
func sharedTokens(a, b []stream.Segment) (tokens int64) {
	for i := 0; i < min(len(a), len(b)) && a[i].ID == b[i].ID; i++ {
		tokens += min(a[i].Tokens, b[i].Tokens)
		if a[i].Tokens != b[i].Tokens {
			break
		}
	}
	return tokens
}

// Segments share as many tokens as the prompts' blocks, and a prompt has at most log2 n segments of
// n prompts.
func TestBlockTree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const size = 64
		prompts := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) int64 {
			return int64(rapid.IntRange(0, 2).Draw(rt, "id"))
		}), 0, 12), 1, 20).Draw(rt, "prompts")
		tree := newBlockTree()
		var ends []int32
		for _, ids := range prompts {
			ends = append(ends, tree.add(ids))
		}
		tree.splitRuns()
		var named [][]stream.Segment
		for i, ids := range prompts {
			p := tree.prompt("s", ends[i], size)
			sum := int64(0)
			for _, s := range p {
				sum += s.Tokens
			}
			if sum != int64(len(ids))*size {
				rt.Fatalf("%v has segments %v", ids, p)
			}
			if most := 1 + math.Log2(float64(len(prompts))); float64(len(p)) > most {
				rt.Fatalf("%v has the segments %v, more than %g", ids, p, most)
			}
			for j, q := range named {
				same := 0
				for same < min(len(ids), len(prompts[j])) && ids[same] == prompts[j][same] {
					same++
				}
				if got := sharedTokens(p, q); got != int64(same)*size {
					rt.Fatalf("%v and %v share %d tokens: %v, %v", ids, prompts[j], got, p, q)
				}
			}
			named = append(named, p)
		}
	})
}

// ownHistory is the share of the blocks of the main agent's calls that repeat the beginning of an
// earlier call.
func ownHistory(s *stream.Session, block int64) float64 {
	var earlier [][]stream.Segment
	hit, all := int64(0), int64(0)
	for i := range s.Steps {
		if strings.HasPrefix(s.Steps[i].ID, "a") {
			continue
		}
		p := s.AppendPrompt(nil, i)
		best := int64(0)
		for _, q := range earlier {
			best = max(best, sharedTokens(p, q))
		}
		hit, all = hit+best/block, all+s.Steps[i].InputTokens/block
		earlier = append(earlier, p)
	}
	if all == 0 {
		return 0
	}
	return float64(hit) / float64(all)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

// data returns the path of public data; the test is skipped without it.
func data(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the data are not here: %v", err)
	}
	return path
}

// The eleven published sessions have the published sizes and the share of their own history. With
// the service times of the trace all calls begin as in the trace.
func TestWekaOriginal(t *testing.T) {
	path := data(t, "agentic/weka_original")
	list, _, err := readAll("weka", Input{Name: path, Path: path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 11 {
		t.Fatalf("%d sessions", len(list))
	}
	var rates []float64
	calls, raw, small := 0, int64(0), 0
	for i := range list {
		s := &list[i].Session
		rates = append(rates, ownHistory(s, 64))
		calls += len(s.Steps)
		small += len(list[i].line(t))
		file := filepath.Join(path, s.ID+".json")
		if info, err := os.Stat(file); err != nil {
			t.Error(err)
		} else {
			raw += info.Size()
		}
		checkTimes(t, s, file)
	}
	// 251 calls of main agents, all with output, and 12 of sub-agents.
	if m := median(rates); calls != 263 || math.Abs(m-0.932) > 0.0005 {
		t.Errorf("%d calls, the median share of own history is %.4f", calls, m)
	}
	if int64(small)*40 > raw {
		t.Errorf("%d bytes of records from %d bytes of files", small, raw)
	}
}

// checkTimes runs s with the service times of its file: every call begins within the second to
// which the file's start times are rounded.
func checkTimes(t *testing.T, s *stream.Session, file string) {
	t.Helper()
	type call struct {
		T        float64  `json:"t"`
		API      *float64 `json:"api_time"`
		Type     string   `json:"type"`
		Duration float64  `json:"duration_ms"`
		Requests []call   `json:"requests"`
	}
	var trace struct {
		Requests []call `json:"requests"`
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &trace)
	}
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]float64, len(s.Steps))
	at := 0
	var play func(calls []call, origin float64)
	play = func(calls []call, origin float64) {
		for _, c := range calls {
			if c.Type == "subagent" {
				play(c.Requests, origin+c.T-c.Duration/1000)
				continue
			}
			begin := 0.0
			for _, i := range s.Steps[at].After {
				begin = max(begin, ends[i])
			}
			begin += float64(s.Steps[at].DelayUS) / 1e6
			if want := origin + c.T; math.Abs(begin-want) > wekaSlack {
				t.Errorf("%s: step %s begins at %.2f, in the trace at %.2f", s.ID, s.Steps[at].ID, begin, want)
			}
			// Continue from the trace's time, so that rounding errors do not add up.
			ends[at] = origin + c.T
			if c.API != nil {
				ends[at] += *c.API
			}
			at++
		}
	}
	play(trace.Requests, 0)
	if at != len(s.Steps) {
		t.Errorf("%s: %d calls, %d steps", s.ID, at, len(s.Steps))
	}
}

// packed is the lossless encoding of a session in the data set with all 710: a prompt keeps the
// first blocks of the previous one and adds runs of new ids.
type packed struct {
	ID        string        `json:"id"`
	BlockSize int64         `json:"block_size"`
	Requests  []packedCalls `json:"requests"`
}

type packedCalls struct {
	T        float64       `json:"t"`
	S        string        `json:"s"`
	In       int64         `json:"in"`
	Out      int64         `json:"out"`
	API      *float64      `json:"api"`
	Think    *float64      `json:"think"`
	Keep     int           `json:"keep"`
	New      [][2]int64    `json:"new"`
	Duration *float64      `json:"duration_ms"`
	Requests []packedCalls `json:"requests"`
}

// appendUnpacked appends calls in the public format.
func appendUnpacked(text []byte, calls []packedCalls) []byte {
	var ids []int64
	text = append(text, '[')
	for i, c := range calls {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `{"t":%g`, c.T)
		for name, v := range map[string]*float64{"api_time": c.API, "think_time": c.Think, "duration_ms": c.Duration} {
			if v != nil {
				text = fmt.Appendf(text, `,"%s":%g`, name, *v)
			}
		}
		if c.Requests != nil {
			text = append(text, `,"type":"subagent","requests":`...)
			text = append(appendUnpacked(text, c.Requests), '}')
			continue
		}
		ids = ids[:c.Keep]
		for _, run := range c.New {
			for i := range run[1] {
				ids = append(ids, run[0]+i)
			}
		}
		text = fmt.Appendf(text, `,"type":"%s","in":%d,"out":%d,"hash_ids":[`, c.S, c.In, c.Out)
		for i, id := range ids {
			if i > 0 {
				text = append(text, ',')
			}
			text = strconv.AppendInt(text, id, 10)
		}
		text = append(text, "]}"...)
	}
	return append(text, ']')
}

// All 710 sessions, converted to the public format: the median share of their own history is 0.955.
func TestWekaSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("460 MB of sessions take seconds")
	}
	f, err := os.Open(data(t, "agentic/weka_claude_code_sessions.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	var text []byte
	steps, segments := 0, 0
	lines := bufio.NewScanner(z)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var p packed
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		text = fmt.Appendf(text[:0], `{"id":"%s","block_size":%d,"hash_id_scope":"local","requests":`, p.ID,
			p.BlockSize)
		text = append(appendUnpacked(text, p.Requests), '}')
		list, _, err := readAll("weka", Input{Name: p.ID, Stream: bytes.NewReader(text)}, Options{})
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d sessions, %v", p.ID, len(list), err)
		}
		s := &list[0].Session
		rates = append(rates, ownHistory(s, 64))
		for i := range s.Steps {
			steps++
			segments += len(s.Steps[i].Prompt)
			checkPrompt(t, s.Steps[i].Prompt, s.Steps[i].InputTokens)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if m := median(rates); len(rates) != 710 || math.Abs(m-0.955) > 0.001 {
		t.Errorf("%d sessions, the median share of own history is %.4f", len(rates), m)
	}
	// 48,658 calls of main agents, 676 of sub-agents, 27 without output.
	if steps != 48658+676-27 || segments > 3*steps {
		t.Errorf("%d steps with %d segments", steps, segments)
	}
}
