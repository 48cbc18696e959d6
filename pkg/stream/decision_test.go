package stream

import (
	"bytes"
	"strings"
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// UnmarshalJSON decodes a candidate with encoding/json; omitted fields are absent.
func (c *Candidate) UnmarshalJSON(line []byte) error {
	type plain Candidate
	*c = NewCandidate("", 0)
	return decodeStrictly(line, (*plain)(c))
}

// Fields that a line omits are absent in the decoded decision and its candidates, and
// an unknown field is an error.
func TestDecisionRoundTrip(t *testing.T) {
	line := `{"kind":"decision","id":"dec-000000","stage":"routing","at_us":5,"request":"r",` +
		`"deployment":"main","replica":0,"score":1,"candidates":2,` +
		`"considered":[{"deployment":"main","replica":0,"score":1,"inflight":0},` +
		`{"deployment":"main","replica":1,"filtered":true,"inflight":2,"queue_depth":0,"kv_util":0}]}`
	read := func(line string) (d Decision, err error) {
		r := NewReader(strings.NewReader(runHeader + line + "\n"))
		defer r.Close()
		for range 2 {
			if !r.Next() {
				t.Fatal(r.Err())
			}
		}
		return d, r.Decision(&d)
	}
	d, err := read(line)
	if err != nil {
		t.Fatal(err)
	}
	first, second := d.Considered[0], d.Considered[1]
	if !first.KVUtil.IsZero() || !first.QueueDepth.IsZero() || !first.Matched.IsZero() || first.Score != 1 {
		t.Errorf("the first candidate is %+v", first)
	}
	if !second.Score.IsZero() || second.QueueDepth != 0 || second.KVUtil != 0 ||
		!second.Running.IsZero() || !second.Cached.IsZero() {
		t.Errorf("the second candidate is %+v", second)
	}
	if encoded := appendDecision(nil, &d, new(numberCache)); string(encoded) != line {
		t.Errorf("encoded again: %s", encoded)
	}
	var b bytes.Buffer
	w := NewWriter(&b, true)
	if err := w.Any(&d); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if diff := cmp.Diff(line+"\n", b.String()); diff != "" {
		t.Error(diff)
	}
	_, err = read(strings.Replace(line, "queue_depth", "queue_dept", 1))
	if err == nil || !strings.Contains(err.Error(), `unknown field "queue_dept"`) {
		t.Errorf("a misspelled field: %v", err)
	}
}

// Our decoder reads what encoding/json does, also into memory that held another
// decision.
func TestDecisionDecoderEqualsEncodingJSON(t *testing.T) {
	var s scanner
	rapid.Check(t, func(t *rapid.T) {
		var reused Decision
		for range 2 {
			v := drawDecision(t)
			v.ID += "d"
			v.Stage = rapid.SampledFrom(Stages).Draw(t, "one of the stages")
			v.AtUS, v.DelayUS, v.Candidates = v.AtUS&maxExact>>1, v.DelayUS&(1<<40), v.Candidates&(1<<40)
			v.ExpectedCachedTokens &= maxTokens
			for i := range v.Considered {
				v.Considered[i].AgeUS &= 1 << 40
				v.Considered[i].Inflight &= maxIndex
				v.Considered[i].Replica &= maxIndex
			}
			line := appendDecision(nil, &v, &testCache)
			if err := s.record(line, &reused); err != nil {
				t.Fatalf("%v in\n%s", err, line)
			}
			plain := Decision{Replica: NoIndex}
			if err := decodeStrictly(line, &plain); err != nil {
				t.Fatal(err)
			}
			want, got := appendDecision(nil, &plain, &testCache), appendDecision(nil, &reused, &testCache)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Fatalf("-encoding/json +ours, encoded again:\n%s", diff)
			}
			result := Decision{Kind: KindDecision, Stage: plain.Stage, AtUS: plain.AtUS, Request: plain.Request,
				Verdict: plain.Verdict, DelayUS: plain.DelayUS, Deployment: plain.Deployment, Replica: plain.Replica,
				Score: plain.Score}
			if err := s.record(line, decisionResult{&plain}); err != nil {
				t.Fatalf("%v in\n%s", err, line)
			}
			if diff := cmp.Diff(result, plain); diff != "" {
				t.Fatalf("-complete +result:\n%s", diff)
			}
		}
	})
}
