package parquet

import "blis/pkg/stream"

// outcomeRow is one row of a table of outcomes. Pointers and lists are null where the
// wire has nothing. (The library does not write every zero of an optional column that
// is no pointer as null.)
type outcomeRow struct {
	ID                   string   `parquet:"id"`
	State                string   `parquet:"state,dict"`
	Reason               *string  `parquet:"reason,optional,dict"`
	ArrivalUS            int64    `parquet:"arrival_us"`
	AdmittedUS           *int64   `parquet:"admitted_us"`
	RoutedUS             *int64   `parquet:"routed_us"`
	EnqueuedUS           *int64   `parquet:"enqueued_us"`
	ScheduledUS          *int64   `parquet:"scheduled_us"`
	FirstTokenUS         *int64   `parquet:"first_token_us"`
	CompletedUS          *int64   `parquet:"completed_us"`
	EndedUS              *int64   `parquet:"ended_us"`
	Deployment           *string  `parquet:"deployment,optional,dict"`
	Replica              *int32   `parquet:"replica"`
	Tenant               *string  `parquet:"tenant,optional,dict"`
	SLOClass             *string  `parquet:"slo_class,optional,dict"`
	Model                *string  `parquet:"model,optional,dict"`
	Priority             float64  `parquet:"priority"`
	Session              *string  `parquet:"session,optional"`
	Step                 *string  `parquet:"step,optional,dict"`
	Iteration            *int64   `parquet:"iteration,optional"`
	Decision             *string  `parquet:"decision,optional"`
	InputTokens          int64    `parquet:"input_tokens"`
	OutputTokens         int64    `parquet:"output_tokens"`
	GeneratedTokens      int64    `parquet:"generated_tokens"`
	CachedTokens         int64    `parquet:"cached_tokens"`
	ExpectedCachedTokens int64    `parquet:"expected_cached_tokens"`
	Preemptions          int64    `parquet:"preemptions"`
	PreemptedUS          *int64   `parquet:"preempted_us,optional"`
	Delays               int64    `parquet:"delays"`
	ITLUS                []gapRow `parquet:"itl_us,optional,list"`
	ITLMaxUS             *int64   `parquet:"itl_max_us"`
	SLOMet               *bool    `parquet:"slo_met"`
}

// gapRow is one run of equal gaps between tokens.
type gapRow struct {
	GapUS int64 `parquet:"gap_us"`
	Count int64 `parquet:"count"`
}

func rowOfOutcome(o *stream.Outcome) outcomeRow {
	r := outcomeRow{
		ID: o.ID, State: o.State, Reason: given(o.Reason), ArrivalUS: int64(o.ArrivalUS),
		AdmittedUS: time(o.AdmittedUS), RoutedUS: time(o.RoutedUS), EnqueuedUS: time(o.EnqueuedUS),
		ScheduledUS: time(o.ScheduledUS), FirstTokenUS: time(o.FirstTokenUS), CompletedUS: time(o.CompletedUS), EndedUS: time(o.EndedUS),
		Deployment: given(o.Deployment), Tenant: given(o.Tenant), SLOClass: given(o.SLOClass), Model: given(o.Model), Priority: o.Priority,
		Session: given(o.Session), Step: given(o.Step), Iteration: given(o.Iteration), Decision: given(o.Decision),
		InputTokens: o.InputTokens, OutputTokens: o.OutputTokens, GeneratedTokens: o.GeneratedTokens,
		CachedTokens: o.CachedTokens, ExpectedCachedTokens: o.ExpectedCachedTokens,
		Preemptions: o.Preemptions, PreemptedUS: given(o.PreemptedUS), Delays: o.Delays, ITLMaxUS: time(o.ITLMaxUS), SLOMet: o.SLOMet, Replica: place(o.Replica),
	}
	for _, gap := range o.ITLUS {
		r.ITLUS = append(r.ITLUS, gapRow{gap[0], gap[1]})
	}
	return r
}

func (r *outcomeRow) record() stream.Outcome {
	o := stream.Outcome{
		Kind: stream.KindOutcome, ID: r.ID, State: r.State, Reason: known(r.Reason), ArrivalUS: stream.Micros(r.ArrivalUS),
		AdmittedUS: micros(r.AdmittedUS), RoutedUS: micros(r.RoutedUS), EnqueuedUS: micros(r.EnqueuedUS),
		ScheduledUS: micros(r.ScheduledUS), FirstTokenUS: micros(r.FirstTokenUS), CompletedUS: micros(r.CompletedUS), EndedUS: micros(r.EndedUS),
		Deployment: known(r.Deployment), Replica: index(r.Replica), Tenant: known(r.Tenant), SLOClass: known(r.SLOClass), Model: known(r.Model), Priority: r.Priority,
		Session: known(r.Session), Step: known(r.Step), Iteration: known(r.Iteration), Decision: known(r.Decision),
		InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, GeneratedTokens: r.GeneratedTokens,
		CachedTokens: r.CachedTokens, ExpectedCachedTokens: r.ExpectedCachedTokens,
		Preemptions: r.Preemptions, PreemptedUS: known(r.PreemptedUS), Delays: r.Delays, ITLMaxUS: micros(r.ITLMaxUS), SLOMet: r.SLOMet,
	}
	for _, gap := range r.ITLUS {
		o.ITLUS = append(o.ITLUS, [2]int64{gap.GapUS, gap.Count})
	}
	return o
}

// given is null for a zero that the wire leaves out, and known its inverse.
func given[T comparable](x T) *T {
	var zero T
	if x == zero {
		return nil
	}
	return &x
}

func known[T any](x *T) (zero T) {
	if x == nil {
		return zero
	}
	return *x
}

// place is null for nowhere, and index its inverse.
func place(i stream.Index) *int32 {
	if i == stream.Nowhere {
		return nil
	}
	n := int32(i)
	return &n
}

func index(n *int32) stream.Index {
	if n == nil {
		return stream.Nowhere
	}
	return stream.Index(*n)
}

// time is null for what never happened.
func time(t stream.Micros) *int64 {
	if t.IsZero() {
		return nil
	}
	us := int64(t)
	return &us
}

// micros is the inverse of time.
func micros(us *int64) stream.Micros {
	if us == nil {
		return stream.Never
	}
	return stream.Micros(*us)
}
