package gen

import (
	"cmp"
	"fmt"

	"blis/pkg/dist"
	"blis/pkg/filter"
	"blis/pkg/stream"
)

// Filter is a condition on requests. The zero Filter keeps all.
type Filter struct {
	text string
	keep func(*stream.Request) (bool, error)
}

// UnmarshalText compiles a CEL expression.
func (f *Filter) UnmarshalText(text []byte) error {
	keep, err := filter.CompileRequest(string(text))
	if err != nil {
		return err
	}
	*f = Filter{string(text), keep}
	return nil
}

// keeps reports whether a meets the condition. A session is kept or dropped as a whole, by its
// first model call.
func (f *Filter) keeps(a *stream.Arrival) (bool, error) {
	if f.keep == nil {
		return true, nil
	}
	r := a.Request
	if a.IsSession {
		r = firstCall(&a.Session)
	}
	keep, err := f.keep(&r)
	if err != nil {
		return false, fmt.Errorf("--where: %s: %w", *a.ID(), err)
	}
	return keep, nil
}

// keeps reports whether a passes --sample and --where. The sample depends only on the seed and the
// id.
func (o *Options) keeps(a *stream.Arrival) (bool, error) {
	if o.Sample != 0 && dist.NewStream(o.seed(), "sample/"+*a.ID()).Float64() >= float64(o.Sample) {
		return false, nil
	}
	return o.Where.keeps(a)
}

// firstCall returns the first model call of s as a request that arrives with the session.
func firstCall(s *stream.Session) stream.Request {
	r := stream.Request{ID: s.ID, ArrivalUS: s.ArrivalUS, Tenant: s.Tenant, SLOClass: s.SLOClass, Priority: s.Priority,
		Model: s.Model, Adapter: s.Adapter, Session: s.ID, DeadlineUS: stream.Never}
	for step := range modelCalls(s) {
		r.InputTokens, r.OutputTokens = step.InputTokens, step.OutputTokens
		r.PredictedOutputTokens, r.Stop = step.PredictedOutputTokens, step.Stop
		r.DraftAcceptance, r.Grammar = step.DraftAcceptance, step.Grammar
		r.Model = cmp.Or(step.Model, s.Model)
		break
	}
	return r
}
