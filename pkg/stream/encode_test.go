package stream

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// viaJSON encodes v with encoding/json, without HTML escaping.
func viaJSON(t interface{ Fatal(...any) }, v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// anyString draws strings with everything that may need an escape.
var anyString = rapid.OneOf(
	rapid.StringMatching(`[a-z0-9./-]{0,20}`),
	rapid.String(),
	rapid.Map(rapid.SliceOf(rapid.SampledFrom([]byte("ab\"\\/<>&\b\f\n\r\t\x00\x1f\x7f\xff\xed\xa0\x80"+
		"\xe2\x80\xa8\xe2\x80\xa9\xf0\x9f\x98\x80\xc3\xa9"))),
		func(b []byte) string { return string(b) }),
)

var anyFloat = rapid.OneOf(
	rapid.Float64(),
	rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 50, 0.1, 1e-6, 9.99e-7, 1e-9, 1e-10, 1e20, 1e21, 1e100,
		5e-324, math.MaxFloat64, -1.5e-7}),
)

var (
	anyTime = rapid.OneOf(rapid.Just(Never),
		rapid.Map(rapid.Int64Range(0, maxExact), func(v int64) Micros { return Micros(v) }))
	anyIndex = rapid.Map(rapid.Int32Min(-1), func(v int32) Index { return Index(v) })
	anyInt   = rapid.Int64()
)

func drawRequest(t *rapid.T) Request {
	return Request{
		Kind: KindRequest, ID: anyString.Draw(t, "id"),
		ArrivalUS:   Micros(anyInt.Draw(t, "arrival_us")),
		InputTokens: anyInt.Draw(t, "input_tokens"), OutputTokens: anyInt.Draw(t, "output_tokens"),
		Prompt: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Segment {
			return Segment{anyString.Draw(t, "id"), anyInt.Draw(t, "tokens"),
				rapid.SampledFrom([]string{"", MediaImage, MediaVideo}).Draw(t, "media")}
		}), 0, 3).Draw(t, "prompt"),
		Tenant: anyString.Draw(t, "tenant"), SLOClass: anyString.Draw(t, "slo_class"),
		Priority: rapid.Int64Range(-maxIndex, maxIndex).Draw(t, "priority"),
		Model:    anyString.Draw(t, "model"), Adapter: anyString.Draw(t, "adapter"),
		Grammar: anyString.Draw(t, "grammar"),
		Session: anyString.Draw(t, "session"), Turn: anyInt.Draw(t, "turn"),
		DeadlineUS: anyTime.Draw(t, "deadline_us"), PredictedOutputTokens: anyInt.Draw(t, "predicted"),
		Stop:            rapid.SampledFrom([]string{"", StopEOS}).Draw(t, "stop"),
		DraftAcceptance: drawShare(t),
	}
}

// drawShare draws a number from 0 to 1, or none.
func drawShare(t *rapid.T) *float64 {
	if rapid.Bool().Draw(t, "absent") {
		return nil
	}
	return new(rapid.Float64Range(0, 1).Draw(t, "share"))
}

func drawOutcome(t *rapid.T) Outcome {
	return Outcome{
		Kind: KindOutcome, ID: anyString.Draw(t, "id"),
		State: anyString.Draw(t, "state"), Reason: anyString.Draw(t, "reason"),
		ArrivalUS:  Micros(anyInt.Draw(t, "arrival_us")),
		AdmittedUS: anyTime.Draw(t, "admitted_us"), RoutedUS: anyTime.Draw(t, "routed_us"),
		EnqueuedUS: anyTime.Draw(t, "enqueued_us"), ScheduledUS: anyTime.Draw(t, "scheduled_us"),
		FirstTokenUS: anyTime.Draw(t, "first_token_us"), CompletedUS: anyTime.Draw(t, "completed_us"),
		EndedUS:    anyTime.Draw(t, "ended_us"),
		Deployment: anyString.Draw(t, "deployment"), Replica: anyIndex.Draw(t, "replica"),
		Tenant: anyString.Draw(t, "tenant"), SLOClass: anyString.Draw(t, "slo_class"),
		Model: anyString.Draw(t, "model"), Adapter: anyString.Draw(t, "adapter"),
		Grammar:  anyString.Draw(t, "grammar"),
		Priority: anyFloat.Draw(t, "priority"),
		Session:  anyString.Draw(t, "session"), Step: anyString.Draw(t, "step"), Iteration: anyInt.Draw(t, "iteration"),
		Decision:    anyString.Draw(t, "decision"),
		InputTokens: anyInt.Draw(t, "input_tokens"), OutputTokens: anyInt.Draw(t, "output_tokens"),
		GeneratedTokens: anyInt.Draw(t, "generated"), CachedTokens: anyInt.Draw(t, "cached"),
		ExpectedCachedTokens: anyInt.Draw(t, "expected"), Preemptions: anyInt.Draw(t, "preemptions"),
		PreemptedUS: anyInt.Draw(t, "preempted_us"), Delays: anyInt.Draw(t, "delays"),
		ITLUS: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int64 {
			return [2]int64{anyInt.Draw(t, "gap"), anyInt.Draw(t, "count")}
		}), 0, 3).Draw(t, "itl_us"),
		ITLMaxUS: anyTime.Draw(t, "itl_max_us"),
		SLOMet:   rapid.SampledFrom([]*bool{nil, BoolPtr(true), BoolPtr(false)}).Draw(t, "slo_met"),
	}
}

func drawDecision(t *rapid.T) Decision {
	return Decision{
		Kind: KindDecision, ID: anyString.Draw(t, "id"), Stage: anyString.Draw(t, "stage"),
		AtUS: Micros(anyInt.Draw(t, "at_us")), Request: anyString.Draw(t, "request"),
		Verdict: anyString.Draw(t, "verdict"), DelayUS: anyInt.Draw(t, "delay_us"),
		Deployment: anyString.Draw(t, "deployment"), Replica: anyIndex.Draw(t, "replica"),
		Score: anyFloat.Draw(t, "score"), Candidates: anyInt.Draw(t, "candidates"),
		Reason: anyString.Draw(t, "reason"), Rule: anyString.Draw(t, "rule"),
		ExpectedCachedTokens: anyInt.Draw(t, "expected"),
		Scorers:              rapid.SliceOfN(anyString, 0, 3).Draw(t, "scorers"),
		Considered:           rapid.SliceOfN(rapid.Custom(drawCandidate), 0, 3).Draw(t, "considered"),
	}
}

func drawCandidate(t *rapid.T) Candidate {
	number := func(label string) Number {
		if rapid.Bool().Draw(t, label) {
			return Number(math.NaN())
		}
		return Number(anyFloat.Draw(t, label))
	}
	return Candidate{
		Deployment: anyString.Draw(t, "deployment"), Replica: anyIndex.Draw(t, "replica"),
		Filtered: rapid.Bool().Draw(t, "filtered"), Score: number("score"),
		Terms: rapid.SliceOfN(anyFloat, 0, 3).Draw(t, "terms"), Inflight: anyIndex.Draw(t, "inflight"),
		QueueDepth: anyIndex.Draw(t, "queue_depth"), Running: anyIndex.Draw(t, "running"), KVUtil: number("kv_util"),
		HitRate: number("hit_rate"), RecentTTFTMS: number("recent_ttft_ms"),
		RecentTPOTMS: number("recent_tpot_ms"), EstWaitMS: number("est_wait_ms"),
		KVUtilCPU: number("kv_util_cpu"), Loading: anyIndex.Draw(t, "loading"),
		Matched: anyIndex.Draw(t, "matched"), Cached: anyIndex.Draw(t, "cached"), AgeUS: anyInt.Draw(t, "age"),
	}
}

func drawStep(t *rapid.T) Step {
	return Step{
		Kind: KindStep, Deployment: anyString.Draw(t, "deployment"), Replica: anyIndex.Draw(t, "replica"),
		StartUS: Micros(anyInt.Draw(t, "start_us")), EndUS: Micros(anyInt.Draw(t, "end_us")),
		PrefillTokens: anyInt.Draw(t, "prefill"), DecodeTokens: anyInt.Draw(t, "decode"),
		Running: anyInt.Draw(t, "running"), Waiting: anyInt.Draw(t, "waiting"),
		UsedBlocks: anyInt.Draw(t, "used_blocks"), Preempted: anyInt.Draw(t, "preempted"),
		Batch: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) BatchEntry {
			return BatchEntry{anyString.Draw(t, "request"), anyInt.Draw(t, "tokens")}
		}), 0, 3).Draw(t, "batch"),
	}
}

// A step is decoded as by encoding/json, also into a buffer that holds another step.
func TestStepDecoderEqualsEncodingJSON(t *testing.T) {
	var s scanner
	read := Step{Batch: []BatchEntry{}}
	rapid.Check(t, func(t *rapid.T) {
		v := drawStep(t)
		numbers := []*int64{(*int64)(&v.StartUS), (*int64)(&v.EndUS), &v.PrefillTokens, &v.DecodeTokens, &v.Running,
			&v.Waiting, &v.UsedBlocks, &v.Preempted}
		for i := range v.Batch {
			numbers = append(numbers, &v.Batch[i].Tokens)
		}
		for _, n := range numbers { // what a record may have
			*n &= 1<<53 - 1
		}
		v.Replica = max(v.Replica, 0)
		line := viaJSON(t, &v)
		if err := s.record([]byte(line), &read); err != nil {
			t.Fatalf("%v in\n%s", err, line)
		}
		var want Step
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Fatalf("-encoding/json +ours:\n%s", diff)
		}
	})
	const line = `{"kind":"step","deployment":"main","replica":0,"start_us":1,"end_us":2,` +
		`"batch":[{"request":"a","tokens":1}]}`
	for _, c := range []struct{ from, to, want string }{
		{`"replica":0`, `"replica":-1`, `replica must be an integer from 0`},
		{`"tokens":1`, `"tokens":"1"`, `batch[0]: tokens must be an integer`},
		{`"end_us"`, `"ends_us"`, `unknown field "ends_us"; did you mean "end_us"?`},
		{`}]}`, `}]`, `invalid JSON at column 108`},
	} {
		err := s.record([]byte(strings.Replace(line, c.from, c.to, 1)), &read)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
}

// testCache is shared by all tests, so that different numbers compete for its entries.
var testCache numberCache

func TestEncodersEqualEncodingJSON(t *testing.T) {
	equal := func(t *rapid.T, got []byte, v any) {
		if diff := cmp.Diff(viaJSON(t, v), string(got)); diff != "" {
			t.Fatalf("-encoding/json +ours:\n%s", diff)
		}
	}
	for name, property := range map[string]func(*rapid.T){
		"request":  func(t *rapid.T) { v := drawRequest(t); equal(t, appendRequest(nil, &v, &testCache), &v) },
		"outcome":  func(t *rapid.T) { v := drawOutcome(t); equal(t, appendOutcome(nil, &v, &testCache), &v) },
		"decision": func(t *rapid.T) { v := drawDecision(t); equal(t, appendDecision(nil, &v, &testCache), &v) },
		"regret":   func(t *rapid.T) { v := drawRegret(t); equal(t, appendRegret(nil, &v, &testCache), &v) },
		"step":     func(t *rapid.T) { v := drawStep(t); equal(t, appendStep(nil, &v, &testCache), &v) },
	} {
		t.Run(name, func(t *testing.T) { rapid.Check(t, property) })
	}
}

func TestEncodeExample(t *testing.T) {
	r := Request{ID: "a\"<é\u2028", ArrivalUS: 5, InputTokens: 7, OutputTokens: 1,
		Prompt: []Segment{{ID: "s", Tokens: 3}, {ID: "t", Tokens: 4}}, DeadlineUS: Never}
	const want = `{"kind":"request","id":"a\"<é\u2028","arrival_us":5,"input_tokens":7,"output_tokens":1,` +
		`"prompt":[{"id":"s","tokens":3},{"id":"t","tokens":4}]}`
	if diff := cmp.Diff(want, string(appendRequest(nil, &r, &testCache))); diff != "" {
		t.Error(diff)
	}
}

// The cache has room for the longest numbers.
func TestCachedNumbersAreComplete(t *testing.T) {
	for _, v := range []float64{-1.2345678901234567e-06, -math.MaxFloat64, -2.2250738585072014e-308,
		-999999999999999868928, 0, math.Copysign(0, -1)} {
		for range 2 {
			if got, want := string(testCache.append(nil, v)), string(appendFloat(nil, v)); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
	}
}

// TestEachByteOfAWordIsLookedAt: a byte to escape ends the prefix wherever it is among its eight.
func TestEachByteOfAWordIsLookedAt(t *testing.T) {
	plain := "abcdefgh"
	if n := unescapedPrefix(plain + plain + "abc"); n != 16 {
		t.Errorf("a plain text has a prefix of %d bytes, want 16", n)
	}
	for i := range plain {
		for _, c := range []string{`"`, `\`, "\n", "\u2028"[:1]} {
			if n := unescapedPrefix(plain + plain[:i] + c + plain[i+1:]); n != 8 {
				t.Errorf("%q at %d of the second word: a prefix of %d bytes, want 8", c, i, n)
			}
		}
	}
}
