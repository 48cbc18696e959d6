package filter

import (
	"reflect"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/stream"
)

// requestFields and outcomeFields are the names that filters of each kind may use.
var requestFields = wireFields[stream.Request](stream.KindRequest)

var outcomeFields = append(wireFields[stream.Outcome](stream.KindOutcome),
	latency("ttft_ms", "Time from arrival, that of the first attempt, to the first token.",
		func(o *stream.Outcome) (from, to stream.Micros) { return o.Began(), o.FirstTokenUS }),
	expr.Field[stream.Outcome]{Name: "tpot_ms", Type: expr.Number,
		Doc: "Time per output token after the first; only if completed with more than one output token.",
		Available: func(o *stream.Outcome) bool {
			return !o.FirstTokenUS.IsZero() && !o.CompletedUS.IsZero() && o.OutputTokens > 1
		},
		Number: func(o *stream.Outcome) float64 {
			return stream.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens)
		}},
	latency("e2e_ms", "Time from arrival, that of the first attempt, to the last token; only if completed.",
		func(o *stream.Outcome) (from, to stream.Micros) { return o.Began(), o.CompletedUS }),
	latency("queue_ms", "Time from entering the replica's queue to the first batch.",
		func(o *stream.Outcome) (from, to stream.Micros) { return o.QueueStartUS(), o.ScheduledUS }),
	latency("prefill_ms", "Time from the first batch to the first token.",
		func(o *stream.Outcome) (from, to stream.Micros) { return o.ScheduledUS, o.FirstTokenUS }),
	latency("decode_ms", "Time from the first token to the last; only if completed.",
		func(o *stream.Outcome) (from, to stream.Micros) { return o.FirstTokenUS, o.CompletedUS }))

// latency is the field of the time between two events, present if both happened.
func latency(name, doc string, events func(*stream.Outcome) (from, to stream.Micros)) expr.Field[stream.Outcome] {
	return expr.Field[stream.Outcome]{Name: name, Doc: doc, Type: expr.Number,
		Available: func(o *stream.Outcome) bool {
			from, to := events(o)
			return !from.IsZero() && !to.IsZero()
		},
		Number: func(o *stream.Outcome) float64 {
			from, to := events(o)
			return float64(to-from) / 1000
		}}
}

// wireFields returns the fields that records of that kind have on the wire, except kind, lists and objects.
func wireFields[T any](kind string) []expr.Field[T] {
	object := stream.Objects[slices.IndexFunc(stream.Objects, func(o *stream.Object) bool { return o.Name == kind })]
	var fields []expr.Field[T]
	for i := range object.Type.NumField() {
		f := object.Type.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		isObject := f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct
		if name == "kind" || f.Type.Kind() == reflect.Slice || isObject {
			continue
		}
		described := object.Fields[i]
		if described.Name != name {
			panic("filter: the object has the field " + described.Name + " instead of " + name)
		}
		field := expr.Field[T]{Name: name, Doc: described.Doc}
		value := func(r *T) reflect.Value { return reflect.ValueOf(r).Elem().Field(i) }
		addAccess(&field, f.Type, described.Required, value)
		fields = append(fields, field)
	}
	return fields
}

// addAccess sets how f reads its value, which value returns with Go type t. A negative
// time or index is absent, and so is a plain integer 0 that is not required.
func addAccess[T any](f *expr.Field[T], t reflect.Type, required bool, value func(*T) reflect.Value) {
	switch t.Kind() {
	case reflect.String:
		f.Type, f.Text = expr.Text, func(r *T) string { return value(r).String() }
	case reflect.Float64:
		f.Type, f.Number = expr.Number, func(r *T) float64 { return value(r).Float() }
	case reflect.Pointer:
		f.Type, f.Flag = expr.Flag, func(r *T) bool { return value(r).Elem().Bool() }
		f.Available = func(r *T) bool { return !value(r).IsNil() }
	case reflect.Bool:
		f.Type, f.Flag = expr.Flag, func(r *T) bool { return value(r).Bool() }
	case reflect.Int64, reflect.Int32:
		f.Type, f.Number = expr.Number, func(r *T) float64 { return float64(value(r).Int()) }
		if required {
			return
		}
		minPresent := int64(0)
		if t == reflect.TypeFor[int64]() {
			minPresent = 1
		}
		f.Available = func(r *T) bool { return value(r).Int() >= minPresent }
	default:
		panic("filter: unknown field type " + t.String())
	}
}
