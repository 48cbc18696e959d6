package expr

import (
	"reflect"
	"strings"

	"blis/pkg/record"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Type is the type of a field.
type Type string

// Types of fields. There is one kind of number.
const (
	Number Type = "number"
	Text   Type = "text"
	Flag   Type = "true or false"
)

func (t Type) cel() *cel.Type {
	switch t {
	case Number:
		return cel.DoubleType
	case Text:
		return cel.StringType
	}
	return cel.BoolType
}

// Field is a name that an expression may use.
type Field struct {
	Name, Doc string
	Type      Type
}

// field is a Field of records of type T. get returns nil where a record does
// not have it.
type field[T any] struct {
	Field
	get func(*T) ref.Val
}

// OutcomeFields and RequestFields are the names that filters may use.
func OutcomeFields() []Field { return list(outcomeFields) }
func RequestFields() []Field { return list(requestFields) }

func list[T any](fields []field[T]) []Field {
	var all []Field
	for _, f := range fields {
		all = append(all, f.Field)
	}
	return all
}

var requestFields = wire[record.Request](record.KindRequest)

var outcomeFields = append(wire[record.Outcome](record.KindOutcome),
	latency("ttft_ms", "Time to first token, from arrival.", func(o *record.Outcome) (from, to record.Micros) {
		return o.ArrivalUS, o.FirstTokenUS
	}),
	field[record.Outcome]{Field{"tpot_ms", "Time per output token after the first; only where completed, with more than one token.", Number}, perToken},
	latency("e2e_ms", "From arrival to the last token; only where completed.", func(o *record.Outcome) (from, to record.Micros) {
		return o.ArrivalUS, o.CompletedUS
	}),
	latency("queue_ms", "From the entry into the replica's queue to the first batch.", func(o *record.Outcome) (from, to record.Micros) {
		return o.EnqueuedUS, o.ScheduledUS
	}),
	latency("prefill_ms", "From the first batch to the first token.", func(o *record.Outcome) (from, to record.Micros) {
		return o.ScheduledUS, o.FirstTokenUS
	}),
	latency("decode_ms", "From the first token to the last; only where completed.", func(o *record.Outcome) (from, to record.Micros) {
		return o.FirstTokenUS, o.CompletedUS
	}))

func latency(name, doc string, ends func(*record.Outcome) (from, to record.Micros)) field[record.Outcome] {
	return field[record.Outcome]{Field{name, doc, Number}, func(o *record.Outcome) ref.Val {
		from, to := ends(o)
		if from.IsZero() || to.IsZero() {
			return nil
		}
		return types.Double(float64(to-from) / 1000)
	}}
}

func perToken(o *record.Outcome) ref.Val {
	if o.FirstTokenUS.IsZero() || o.CompletedUS.IsZero() || o.OutputTokens <= 1 {
		return nil
	}
	return types.Double(record.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens))
}

// wire makes fields of what records of that kind have on the wire, by the same
// names, but for their kind and their lists.
func wire[T any](kind string) []field[T] {
	object := describe(kind)
	var fields []field[T]
	for i := range object.Type.NumField() {
		f := object.Type.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "kind" || f.Type.Kind() == reflect.Slice {
			continue
		}
		about := object.Fields[i]
		if about.Name != name {
			panic("expr: the table of fields has " + about.Name + " in the place of " + name)
		}
		kind, get := access(f.Type, about.Required)
		fields = append(fields, field[T]{Field{name, about.Doc, kind}, func(r *T) ref.Val {
			return get(reflect.ValueOf(r).Elem().Field(i))
		}})
	}
	return fields
}

func describe(kind string) *record.Object {
	for _, o := range record.Objects {
		if o.Name == kind {
			return o
		}
	}
	panic("expr: there are no records of kind " + kind)
}

// access returns the type of a field of Go type t, and how to read it: nil where
// it is absent. Times and indexes say so by being negative, a plain integer that
// is not required by being 0.
func access(t reflect.Type, required bool) (Type, func(reflect.Value) ref.Val) {
	switch t.Kind() {
	case reflect.String:
		return Text, func(v reflect.Value) ref.Val { return types.String(v.String()) }
	case reflect.Float64:
		return Number, func(v reflect.Value) ref.Val { return types.Double(v.Float()) }
	case reflect.Pointer:
		return Flag, func(v reflect.Value) ref.Val {
			if v.IsNil() {
				return nil
			}
			return types.Bool(v.Elem().Bool())
		}
	case reflect.Int64, reflect.Int32:
		least := int64(0)
		if t == reflect.TypeFor[int64]() {
			least = 1
		}
		return Number, func(v reflect.Value) ref.Val {
			if !required && v.Int() < least {
				return nil
			}
			return types.Double(v.Int())
		}
	}
	panic("expr: no rule for fields of type " + t.String())
}
