package filter

import (
	"reflect"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/stream"
)

// Field is a name that a filter may use.
type Field struct {
	Name, Doc string
	Type      expr.Type
}

// OutcomeFields and RequestFields are the names that filters may use.
func OutcomeFields() []Field { return list(outcomeFields) }
func RequestFields() []Field { return list(requestFields) }

func list[T any](fields []expr.Field[T]) []Field {
	var all []Field
	for _, f := range fields {
		all = append(all, Field{f.Name, f.Doc, f.Type})
	}
	return all
}

var requestFields = wire[stream.Request](stream.KindRequest)

var outcomeFields = append(wire[stream.Outcome](stream.KindOutcome),
	latency("ttft_ms", "Time to first token, from arrival.", func(o *stream.Outcome) (from, to stream.Micros) {
		return o.ArrivalUS, o.FirstTokenUS
	}),
	expr.Field[stream.Outcome]{Name: "tpot_ms", Doc: "Time per output token after the first; only where completed, with more than one token.", Type: expr.Number,
		Available: func(o *stream.Outcome) bool {
			return !o.FirstTokenUS.IsZero() && !o.CompletedUS.IsZero() && o.OutputTokens > 1
		},
		Number: func(o *stream.Outcome) float64 {
			return stream.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens)
		}},
	latency("e2e_ms", "From arrival to the last token; only where completed.", func(o *stream.Outcome) (from, to stream.Micros) {
		return o.ArrivalUS, o.CompletedUS
	}),
	latency("queue_ms", "From the entry into the replica's queue to the first batch.", func(o *stream.Outcome) (from, to stream.Micros) {
		return o.EnqueuedUS, o.ScheduledUS
	}),
	latency("prefill_ms", "From the first batch to the first token.", func(o *stream.Outcome) (from, to stream.Micros) {
		return o.ScheduledUS, o.FirstTokenUS
	}),
	latency("decode_ms", "From the first token to the last; only where completed.", func(o *stream.Outcome) (from, to stream.Micros) {
		return o.FirstTokenUS, o.CompletedUS
	}))

func latency(name, doc string, ends func(*stream.Outcome) (from, to stream.Micros)) expr.Field[stream.Outcome] {
	return expr.Field[stream.Outcome]{Name: name, Doc: doc, Type: expr.Number,
		Available: func(o *stream.Outcome) bool {
			from, to := ends(o)
			return !from.IsZero() && !to.IsZero()
		},
		Number: func(o *stream.Outcome) float64 {
			from, to := ends(o)
			return float64(to-from) / 1000
		}}
}

// wire makes fields of what records of that kind have on the wire, by the same
// names, but for their kind and their lists.
func wire[T any](kind string) []expr.Field[T] {
	object := describe(kind)
	var fields []expr.Field[T]
	for i := range object.Type.NumField() {
		f := object.Type.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "kind" || f.Type.Kind() == reflect.Slice {
			continue
		}
		about := object.Fields[i]
		if about.Name != name {
			panic("filter: the table of fields has " + about.Name + " in the place of " + name)
		}
		field := expr.Field[T]{Name: name, Doc: about.Doc}
		access(&field, f.Type, about.Required, func(r *T) reflect.Value { return reflect.ValueOf(r).Elem().Field(i) })
		fields = append(fields, field)
	}
	return fields
}

func describe(kind string) *stream.Object {
	for _, o := range stream.Objects {
		if o.Name == kind {
			return o
		}
	}
	panic("filter: there are no records of kind " + kind)
}

// access completes a field of Go type t that of returns: times and indexes say
// that they are absent by being negative, a plain integer that is not required
// by being 0.
func access[T any](f *expr.Field[T], t reflect.Type, required bool, of func(*T) reflect.Value) {
	switch t.Kind() {
	case reflect.String:
		f.Type, f.Text = expr.Text, func(r *T) string { return of(r).String() }
	case reflect.Float64:
		f.Type, f.Number = expr.Number, func(r *T) float64 { return of(r).Float() }
	case reflect.Pointer:
		f.Type, f.Flag = expr.Flag, func(r *T) bool { return of(r).Elem().Bool() }
		f.Available = func(r *T) bool { return !of(r).IsNil() }
	case reflect.Int64, reflect.Int32:
		f.Type, f.Number = expr.Number, func(r *T) float64 { return float64(of(r).Int()) }
		if required {
			return
		}
		least := int64(0)
		if t == reflect.TypeFor[int64]() {
			least = 1
		}
		f.Available = func(r *T) bool { return of(r).Int() >= least }
	default:
		panic("filter: no rule for fields of type " + t.String())
	}
}
