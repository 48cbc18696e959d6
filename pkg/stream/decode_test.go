package stream

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// decodeRequest and decodeOutcome decode one line with a new scanner.
func decodeRequest(line string, r *Request) error {
	return new(scanner).record([]byte(line), r)
}

func decodeOutcome(line string, o *Outcome) error {
	return new(scanner).record([]byte(line), o)
}

// validate makes a random request valid for the decoder.
func (r *Request) validate() {
	clean(&r.ID, &r.Tenant, &r.SLOClass, &r.Model, &r.Adapter, &r.Grammar, &r.Session)
	r.Turn &= 1<<40 - 1
	r.ID += "r"
	r.ArrivalUS &= 1<<40 - 1
	tokens(1, &r.OutputTokens)
	tokens(0, &r.PredictedOutputTokens)
	r.InputTokens = 1
	for i := range r.Prompt {
		seg := &r.Prompt[i]
		clean(&seg.ID)
		seg.ID += "s"
		seg.Tokens = 1 + seg.Tokens&0xFFFF
		r.InputTokens += seg.Tokens
	}
	if r.DeadlineUS != Never {
		r.DeadlineUS = max(r.DeadlineUS, r.ArrivalUS)
	}
}

// validate makes a random outcome valid for the decoder.
func (o *Outcome) validate() {
	clean(&o.ID, &o.Reason, &o.Deployment, &o.Tenant, &o.SLOClass, &o.Model, &o.Adapter, &o.Grammar, &o.Session,
		&o.Step, &o.Decision)
	o.ID += "r"
	o.State = states[len(o.State)%len(states)]
	tokens(1, &o.InputTokens, &o.OutputTokens)
	o.PreemptedUS &= 1<<40 - 1
	tokens(0, &o.Iteration, &o.GeneratedTokens, &o.CachedTokens, &o.ExpectedCachedTokens, &o.Preemptions, &o.Delays)
	for i := range o.ITLUS {
		o.ITLUS[i] = [2]int64{o.ITLUS[i][0] & (maxExact - 1), 1 + o.ITLUS[i][1]&0xFFFF}
	}
	o.ArrivalUS &= 1<<40 - 1
	if o.State == StateCompleted || o.FirstTokenUS != Never {
		o.FirstTokenUS = max(o.FirstTokenUS, o.ArrivalUS)
	}
	o.CompletedUS = Never
	if o.EndedUS != Never {
		o.EndedUS = max(o.EndedUS, o.ArrivalUS)
	}
	if o.State == StateCompleted {
		o.EndedUS = Never
		o.CompletedUS = min(o.FirstTokenUS+7, maxExact)
	}
}

// tokens brings numbers into the bounds of a token count.
func tokens(min int64, numbers ...*int64) {
	for _, n := range numbers {
		*n = min + *n&0xFFFFFF
	}
}

// clean makes strings valid UTF-8.
func clean(texts ...*string) {
	for _, s := range texts {
		*s = strings.ToValidUTF8(*s, "")
	}
}

func TestEncodeDecodeRoundTrip(t *testing.T) {
	t.Run("request", rapid.MakeCheck(func(t *rapid.T) {
		want := drawRequest(t)
		want.validate()
		got := drawRequest(t) // the decoder must overwrite everything
		if err := decodeRequest(string(appendRequest(nil, &want, &testCache)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("outcome", rapid.MakeCheck(func(t *rapid.T) {
		want := drawOutcome(t)
		want.validate()
		got := drawOutcome(t)
		if err := decodeOutcome(string(appendOutcome(nil, &want, &testCache)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	}))
}

const (
	exampleRequest = `{"kind":"request","id":"r1","arrival_us":10,"input_tokens":8,"output_tokens":2,` +
		`"prompt":[{"id":"a","tokens":3},{"id":"b","tokens":5}],"tenant":"t","deadline_us":20}`
	exampleOutcome = `{"kind":"outcome","id":"r1","state":"completed","arrival_us":10,"first_token_us":20,` +
		`"completed_us":30,"replica":0,"priority":1.5,"input_tokens":8,"output_tokens":2,"generated_tokens":2,` +
		`"cached_tokens":0,"expected_cached_tokens":0,` +
		`"preemptions":0,"delays":0,"itl_us":[[5,1],[7,2]],"slo_met":true}`
)

func TestDecodeErrors(t *testing.T) {
	const tokenRange = "must be an integer from 1 to 2147483647, not "
	request := func(line string) error { return decodeRequest(line, new(Request)) }
	outcome := func(line string) error { return decodeOutcome(line, new(Outcome)) }
	for _, c := range []struct {
		decode         func(string) error
		line, old, new string
		want           string
	}{
		{request, exampleRequest, `"id":"r1"`, `"id":""`, "id is empty"},
		{request, exampleRequest, `"id":"r1",`, ``, "id is missing"},
		{request, exampleRequest, `"id":"r1"`, `"id":null`, "id must be a string, not null"},
		{request, exampleRequest, `"id":"r1"`, `"id":7`, "id must be a string, not 7"},
		{request, exampleRequest, `"tenant"`, `"tenan"`, `unknown field "tenan"; did you mean "tenant"? (have kind, ` +
			`id, arrival_us, input_tokens, output_tokens, stop, draft_acceptance, prompt, tenant, slo_class, ` +
			`priority, model, adapter, grammar, session, turn, deadline_us, predicted_output_tokens, retry)`},
		{request, exampleRequest, `"tenant":"t"`, `"id":"t"`, "id appears twice"},
		{request, exampleRequest, `"kind":"request"`, `"kind":"outcome"`, `kind must be request, not "outcome"`},
		{request, exampleRequest, `"arrival_us":10`, `"arrival_us":-1`,
			"arrival_us must be an integer from 0 to 9007199254740992, not -1"},
		{request, exampleRequest, `"arrival_us":10`, `"arrival_us":9007199254740993`,
			"arrival_us must be an integer from 0 to 9007199254740992, not 9007199254740993"},
		{request, exampleRequest, `"arrival_us":10,`, ``, "arrival_us is missing"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":0`, "input_tokens " + tokenRange + "0"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":2147483648`,
			"input_tokens " + tokenRange + "2147483648"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":99999999999999999999`,
			"input_tokens " + tokenRange + "99999999999999999999"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":8.0`, "input_tokens " + tokenRange + "8.0"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":8e1`, "input_tokens " + tokenRange + "8e1"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":08`, "input_tokens " + tokenRange + "08"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":NaN`, "input_tokens " + tokenRange + "NaN"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":"8"`, "input_tokens " + tokenRange + "a string"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":1` + strings.Repeat("0", 50),
			"input_tokens " + tokenRange + "1" + strings.Repeat("0", 29) + "…"},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":[8]`, `input_tokens ` + tokenRange + `a list`},
		{request, exampleRequest, `"input_tokens":8`, `"input_tokens":7`,
			"the prompt segments total 8 tokens, more than input_tokens (7)"},
		{request, exampleRequest, `"tokens":5`, `"tokens":0`, "prompt[1]: tokens " + tokenRange + "0"},
		{request, exampleRequest, `"id":"b"`, `"id":""`, "prompt[1]: id is empty"},
		{request, exampleRequest, `"id":"b",`, ``, "prompt[1]: id is missing"},
		{request, exampleRequest, `"id":"b",`, `"id":"b","x":1,`,
			`prompt[1]: unknown field "x" (have id, tokens, media)`},
		{request, exampleRequest, `[{"id":"a","tokens":3},{"id":"b","tokens":5}]`, `{}`,
			"prompt must be a list, not an object"},
		{request, exampleRequest, `"deadline_us":20`, `"deadline_us":9`,
			"deadline_us must be at least arrival_us (10), not 9"},
		{request, exampleRequest, `"tenant":"t"`, `"tenant":"\ud800"`,
			"invalid JSON at column 151: unpaired surrogate"},
		{request, exampleRequest, `"tenant":"t"`, `"tenant":"\ud800\u0041"`,
			"invalid JSON at column 157: unpaired surrogate"},
		{request, exampleRequest, `"tenant":"t"`, `"tenant":"\ud83d \ude00"`,
			"invalid JSON at column 151: unpaired surrogate"},
		{request, exampleRequest, `"tenant":"t"`, "\"tenant\":\"\xff\"", "invalid JSON at column 145: invalid UTF-8"},
		{request, exampleRequest, `"tenant":"t"`, "\"tenant\":\"\x01\"",
			"invalid JSON at column 145: unescaped control character in a string"},
		{request, exampleRequest, `"tenant":"t"`, `"tenant":"\x"`, "invalid JSON at column 146: unknown escape"},
		{request, exampleRequest, `"tenant":"t"`, `"tenant":"\u12g4"`,
			"invalid JSON at column 149: expected a hexadecimal digit"},
		{request, exampleRequest, `"tenant":"t",`, `"tenant":"t"`, "invalid JSON at column 147: expected , or }"},
		{request, exampleRequest, `20}`, `20} x`, "invalid JSON at column 166: unexpected data after the record"},
		{request, exampleRequest, `20}`, `20`, "invalid JSON at column 164: expected , or }"},
		{request, exampleRequest, exampleRequest, `[]`, "invalid JSON at column 1: expected {"},
		{outcome, exampleOutcome, `"completed",`, `"complete",`,
			`unknown state "complete"; did you mean "completed"? ` +
				`(have completed, rejected, timed_out, failed, unfinished)`},
		{outcome, exampleOutcome, `"completed",`, `"rejected",`,
			"completed_us is present, but the state is rejected"},
		{outcome, exampleOutcome, `"first_token_us":20,`, ``,
			"first_token_us is missing, but the request completed"},
		{outcome, exampleOutcome, `"completed_us":30,`, ``,
			"completed_us is missing, but the request completed"},
		{outcome, exampleOutcome, `"first_token_us":20`, `"first_token_us":9`,
			"first_token_us must be at least arrival_us (10), not 9"},
		{outcome, exampleOutcome, `"completed_us":30`, `"completed_us":19`,
			"completed_us must be at least first_token_us (20), not 19"},
		{outcome, exampleOutcome, `"replica":0`, `"replica":-1`,
			"replica must be an integer from 0 to 2147483647, not -1"},
		{outcome, exampleOutcome, `1.5`, `NaN`, "priority must be a number, not NaN"},
		{outcome, exampleOutcome, `1.5`, `1e999`, "priority must be a finite number, not 1e999"},
		{outcome, exampleOutcome, `"slo_met":true`, `"slo_met":1`, "slo_met must be true or false, not 1"},
		{outcome, exampleOutcome, `[7,2]`, `[7,0]`, "itl_us[1]: the count " + tokenRange + "0"},
		{outcome, exampleOutcome, `[7,2]`, `7`, "itl_us[1]: a gap must be [µs, count], not 7"},
		{outcome, exampleOutcome, `[7,2]`, `[7,2,3]`, "itl_us[1]: invalid JSON at column 278: expected ]"},
	} {
		line := strings.Replace(c.line, c.old, c.new, 1)
		err := c.decode(line)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", line, err, c.want)
		}
	}
}

func TestDecodeEscapes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t"},
		{`\u00e9\u0041\u4F60`, "éA你"},
		{`\ud83d\ude00`, "😀"},
		{`\ufffd`, "\ufffd"},
		{"nine ASCII bytes é", "nine ASCII bytes é"},
		{"\x7f", "\x7f"},
	} {
		var r Request
		err := decodeRequest(strings.Replace(exampleRequest, `"t"`, `"`+c.text+`"`, 1), &r)
		if err != nil || r.Tenant != c.want {
			t.Errorf("%s: got %q, %v", c.text, r.Tenant, err)
		}
	}
}

// Strings of a decoded record stay valid when the next line is decoded into the same
// record from the same memory.
func TestStringsStayValid(t *testing.T) {
	s := new(scanner)
	var r Request
	memory := []byte(exampleRequest)
	if err := s.record(memory, &r); err != nil {
		t.Fatal(err)
	}
	id, tenant, segment := r.ID, r.Tenant, r.Prompt[0].ID
	copy(memory, strings.NewReplacer("r1", "r2", `"t"`, `"u"`, `"a"`, `"c"`).Replace(exampleRequest))
	if err := s.record(memory, &r); err != nil {
		t.Fatal(err)
	}
	if id != "r1" || tenant != "t" || segment != "a" || r.ID != "r2" {
		t.Errorf("strings became %q, %q, %q; the next id is %q", id, tenant, segment, r.ID)
	}
}

// A scanner compares a string with the last one of its field. One with an escape is not its own text, and each field
// has its own last one.
func TestStringsAreNotMistakenForTheLastOnes(t *testing.T) {
	s := new(scanner)
	for _, c := range []struct{ tenant, class, want, wantClass string }{
		{`"a"`, `"b"`, "a", "b"}, {`"a"`, `"b"`, "a", "b"}, {`"b"`, `"a"`, "b", "a"}, {`"a"`, `""`, "a", ""},
		{`"a\\"`, `"a"`, `a\`, "a"}, {`"a\",\"x"`, `"a"`, `a","x`, "a"}, {`"a\\"`, `"aa"`, `a\`, "aa"},
		{`"\u00e9"`, `"a"`, "é", "a"}, {`"é"`, `"a"`, "é", "a"},
		{`"a"  `, `"aaaaaaaaaaaaaaaa"`, "a", "aaaaaaaaaaaaaaaa"},
	} {
		var r Request
		line := strings.Replace(exampleRequest, `"tenant":"t"`, `"tenant":`+c.tenant+`,"slo_class":`+c.class, 1)
		if err := s.record([]byte(line), &r); err != nil || r.Tenant != c.want || r.SLOClass != c.wantClass {
			t.Errorf("%s, %s: got %q and %q, %v", c.tenant, c.class, r.Tenant, r.SLOClass, err)
		}
	}
}

// The ids of outcomes are in pieces of memory with many others.
func TestDecodeAllocatesOnlyIDs(t *testing.T) {
	s := new(scanner)
	var r Request
	var o Outcome
	withDecision := strings.Replace(exampleOutcome, `"replica"`, `"decision":"dec-000001","replica"`, 1)
	for _, c := range []struct {
		line string
		v    interface{ decode(*scanner) }
		want float64
	}{
		{strings.Replace(exampleRequest, "r1", "request-000001", 1), &r, 1},
		{strings.Replace(withDecision, "r1", "request-000001", 1), &o, 0},
	} {
		line := []byte(c.line)
		got := testing.AllocsPerRun(100, func() {
			if err := s.record(line, c.v); err != nil {
				t.Fatal(err)
			}
		})
		if got != c.want {
			t.Errorf("%v allocations, want %v: %s", got, c.want, line)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(exampleRequest))
	f.Fuzz(func(t *testing.T, line []byte) {
		var got Request
		err := decodeRequest(string(line), &got)
		want, ok := oracleRequest(line)
		if err != nil {
			if ok && !beyondOracle(line) {
				t.Fatalf("rejected: %v", err)
			}
			return
		}
		if !ok {
			t.Fatalf("accepted as %+v", got)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzOutcome(f *testing.F) {
	f.Add([]byte(exampleOutcome))
	f.Fuzz(func(t *testing.T, line []byte) {
		var got Outcome
		err := decodeOutcome(string(line), &got)
		want, ok := oracleOutcome(line)
		if err != nil {
			if ok && !beyondOracle(line) {
				t.Fatalf("rejected: %v", err)
			}
			return
		}
		if !ok {
			t.Fatalf("accepted as %+v", got)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Fields are read in any order, whatever the order in the lines before: a scanner looks first for the one that followed
// last time.
func TestDecodeFieldsInAnyOrder(t *testing.T) {
	fields := []string{`"kind": "request"`, `"id": "a"`, `"arrival_us": 7`, `"input_tokens": 3`, `"output_tokens": 2`,
		`"prompt": [{"tokens": 1, "id": "x"}]`, `"tenant": "t"`}
	want := Request{Kind: "request", ID: "a", ArrivalUS: 7, InputTokens: 3, OutputTokens: 2, Tenant: "t",
		Prompt: []Segment{{ID: "x", Tokens: 1}}, DeadlineUS: Never}
	var s scanner
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		line := "{" + strings.Join(fields, ", ") + "}"
		var got Request
		if err := s.record([]byte(line), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %+v, %v", line, got, err)
		}
		twice := strings.Replace(line, `"tenant": "t"`, `"tenant": "t", "id": "a"`, 1)
		if err := s.record([]byte(twice), &got); err == nil || err.Error() != "id appears twice" {
			t.Fatalf("%s: %v", twice, err)
		}
	}
}
