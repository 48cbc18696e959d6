package filter

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/expr"
	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// completed is a completed request: TTFT 120 ms, E2E 1020 ms, queue 5 ms.
func completed() *stream.Outcome {
	return &stream.Outcome{ID: "req-7", State: stream.StateCompleted, ArrivalUS: 1_000_000, AdmittedUS: 1_000_000,
		RoutedUS: 1_000_000, EnqueuedUS: 1_002_000, ScheduledUS: 1_007_000, FirstTokenUS: 1_120_000,
		CompletedUS: 2_020_000, Deployment: "main", Replica: 3,
		Tenant: "t1", SLOClass: "critical", Model: "m", Priority: 100, InputTokens: 1500, OutputTokens: 10,
		GeneratedTokens: 10, CachedTokens: 512, ITLMaxUS: 100_000, SLOMet: stream.BoolPtr(true)}
}

// rejected is a rejected request.
func rejected() *stream.Outcome {
	return &stream.Outcome{ID: "req-8", State: stream.StateRejected, Reason: "too_long_for_model", ArrivalUS: 2_000_000,
		AdmittedUS: stream.Never, RoutedUS: stream.Never, EnqueuedUS: stream.Never, ScheduledUS: stream.Never,
		FirstTokenUS: stream.Never, CompletedUS: stream.Never, EndedUS: stream.Never, Replica: stream.NoIndex,
		InputTokens: 9, OutputTokens: 1, ITLMaxUS: stream.Never}
}

func keeps(t *testing.T, src string, o *stream.Outcome) bool {
	t.Helper()
	filter, err := CompileOutcome(src)
	if err != nil {
		t.Errorf("%s: %v", src, err)
		return false
	}
	kept, err := filter(o)
	if err != nil {
		t.Errorf("%s: %v", src, err)
	}
	return kept
}

func TestOutcomeFilter(t *testing.T) {
	for _, c := range []struct {
		src                 string
		completed, rejected bool
	}{
		{`true`, true, true},
		{`input_tokens > 1000`, true, false},
		{`1000 < input_tokens && input_tokens <= 1500.0`, true, false},
		{`input_tokens / 2 == 4.5`, false, true},
		{`replica == 3`, true, false},
		{`replica in [1, 3, 5u]`, true, false},
		{`[0, 3, 9][1] == replica`, true, false},
		{`[1, 3].exists(r, r == replica)`, true, false},
		{`size(id) == 5 && id.size() == 5`, true, true},
		{`int(ttft_ms / 50) == 2`, true, false},
		{`-1 < replica`, true, false},
		{`ttft_ms == 120`, true, false},
		{`tpot_ms == 100`, true, false},
		{`e2e_ms == 1020`, true, false},
		{`queue_ms == 5`, true, false},
		{`prefill_ms == 113`, true, false},
		{`decode_ms == 900`, true, false},
		{`slo_met`, true, false},
		{`!slo_met`, false, false},
		{`tenant.startsWith("t") && slo_class == "critical"`, true, false},
		{`tenant == ""`, false, true},
		{`reason.contains("too_long")`, false, true},
		{`state == "completed" ? ttft_ms < 200 : input_tokens < 10`, true, true},
		// An absent value makes comparisons unknown and is read only if it matters.
		{`ttft_ms > 100`, true, false},
		{`!(ttft_ms > 100)`, false, false},
		{`ttft_ms == ttft_ms`, true, false},
		{`ttft_ms != 0`, true, false},
		{`state == "rejected" || ttft_ms > 100`, true, true},
		{`ttft_ms > 100 || state == "rejected"`, true, true},
		{`ttft_ms > 100 && state == "rejected"`, false, false},
		{`!(ttft_ms > 100 && state == "completed")`, false, true},
		{`(ttft_ms > 100) == false`, false, false},
		{`ttft_ms > 100 ? true : true`, true, false},
		{`[ttft_ms, 1].exists(x, x == 1)`, true, false},
		{`iteration == 0`, false, false},
	} {
		if got := keeps(t, c.src, completed()); got != c.completed {
			t.Errorf("%s keeps the completed request: %v", c.src, got)
		}
		if got := keeps(t, c.src, rejected()); got != c.rejected {
			t.Errorf("%s keeps the rejected request: %v", c.src, got)
		}
	}
}

func TestRequestFilter(t *testing.T) {
	r := &stream.Request{ID: "r", ArrivalUS: 5, InputTokens: 10, OutputTokens: 2, Tenant: "a", DeadlineUS: stream.Never}
	for src, want := range map[string]bool{
		`arrival_us >= 5 && output_tokens < 3`: true,
		`tenant == "a"`:                        true,
		`deadline_us > 0`:                      false,
		`predicted_output_tokens == 0`:         false,
	} {
		filter, err := CompileRequest(src)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := filter(r); got != want || err != nil {
			t.Errorf("%s: %v, %v", src, got, err)
		}
	}
}

func TestErrorsHavePositions(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`e2e_mss > 1`, `1:1: unknown name "e2e_mss"; did you mean "e2e_ms"? (have id, state, `},
		{"tenant == 'a' &&\n  inputtokens > 1", `2:3: unknown name "inputtokens"; did you mean "input_tokens"?`},
		{`input_tokens >`, `1:15: Syntax error: `},
		{`input_tokens`, `1:1: this is of type number; it must be of type true or false, such as 1 < 2`},
		{`tenant > 3`, `1:8: > does not take (text, number)`},
		{``, `1:1: `},
		{`{"a": 1}.exists(k, k == id)`, `1:1: maps are not allowed: the order of their keys is not defined`},
		{`itl_us == 1`, `1:1: unknown name "itl_us"`},
		{`siez(id) == 3`, `1:5: unknown function "siez"`},
	} {
		_, err := CompileOutcome(c.src)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.src, err, c.want)
		}
	}
}

func TestEvaluationErrors(t *testing.T) {
	filter, err := CompileOutcome(`double(id) > 3`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = filter(completed()); err == nil || !strings.HasPrefix(err.Error(), "evaluating the expression: ") {
		t.Errorf("the id as a number: %v", err)
	}
	o := completed()
	o.ID = "4"
	if kept, err := filter(o); !kept || err != nil {
		t.Errorf("after an error: %v, %v", kept, err)
	}
}

// Every field has a documentation and can be used in an expression of its type.
func TestFields(t *testing.T) {
	names := map[string]bool{}
	for _, f := range outcomeFields {
		names[f.Name] = true
		if f.Doc == "" {
			t.Errorf("%s has no documentation", f.Name)
		}
		src := map[expr.Type]string{
			expr.Number: `%s > 0 || true`, expr.Text: `%s != "" || true`, expr.Flag: `%s || true`,
		}[f.Type]
		if !keeps(t, fmt.Sprintf(src, f.Name), rejected()) {
			t.Errorf("%s cannot be used", f.Name)
		}
	}
	for _, name := range strings.Fields(`id state reason arrival_us admitted_us routed_us enqueued_us scheduled_us
		first_token_us completed_us ended_us deployment replica tenant slo_class model priority session step iteration
		decision input_tokens output_tokens generated_tokens cached_tokens expected_cached_tokens preemptions
		preempted_us delays itl_max_us slo_met ttft_ms tpot_ms e2e_ms queue_ms prefill_ms decode_ms`) {
		if !names[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if len(requestFields) != 16 {
		t.Errorf("%d fields of a request, want 16", len(requestFields))
	}
}

// Numbers and integers compare as in Go.
func TestNumbersCompareAsInGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(-5, 1<<50).Draw(t, "limit")
		value := rapid.OneOf(rapid.Int64Range(1, math.MaxInt32), rapid.Just(limit)).Draw(t, "value")
		filter, err := CompileOutcome(fmt.Sprintf("input_tokens >= %d", limit))
		if err != nil {
			t.Fatal(err)
		}
		o := completed()
		o.InputTokens = value
		if got, err := filter(o); got != (value >= limit) || err != nil {
			t.Fatalf("%d >= %d: %v, %v", value, limit, got, err)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, src := range []string{`input_tokens > 1000`, `size(id) == 3 ? slo_met : [1][0] == 1`, `{}`, `a.b.c`, `"\n`,
		`int(int(1u))`} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		filter, err := CompileOutcome(src)
		if err != nil {
			return
		}
		first, failed := filter(completed())
		second, failedAgain := filter(completed())
		if first != second || (failed == nil) != (failedAgain == nil) {
			t.Errorf("%q: %v, %v, then %v, %v", src, first, failed, second, failedAgain)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	filter, err := CompileOutcome(`input_tokens > 1000 && ttft_ms > 100`)
	if err != nil {
		b.Fatal(err)
	}
	o := completed()
	b.ReportAllocs()
	for b.Loop() {
		if kept, err := filter(o); !kept || err != nil {
			b.Fatal(kept, err)
		}
	}
}

// TestZeroIsPresent: a time or an index of 0 is one, and a count that may be absent is there from 1 on.
func TestZeroIsPresent(t *testing.T) {
	o := completed()
	o.AdmittedUS, o.Replica, o.Redirects, o.TransferBlocks = 0, 0, 1, 0
	for src, want := range map[string]bool{"admitted_us == 0": true, "replica == 0": true, "redirects == 1": true,
		"transfer_blocks == 0 || transfer_blocks != 0": false} {
		if got := keeps(t, src, o); got != want {
			t.Errorf("%s keeps it: %v", src, got)
		}
	}
}
