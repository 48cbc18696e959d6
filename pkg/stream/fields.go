package stream

import "reflect"

// Bounds of integers on the wire. Token counts stay below 2^31, so that sums and
// products of a few never overflow; all other integers up to 2^53, where every JSON
// reader is still exact.
const (
	maxTokens = 1<<31 - 1
	maxIndex  = 1<<31 - 1
	maxExact  = 1 << 53
)

// Field describes one field of an object for decoders, schemas and lists of fields.
type Field struct {
	Name, Doc string
	// Required fields are always written.
	Required bool
	// Min and Max are the inclusive bounds of an integer; Max 0 is no bound.
	Min, Max int64
	// OneOf lists the allowed strings; nil allows any.
	OneOf []string
	// number is that of the field among those of all objects, from 1; 0 if it is of none.
	number int
}

// Object describes one object on the wire: a record, whose Name is its kind, or a part
// of one. Fields are in the order of the Go type, which is the order of writing.
type Object struct {
	Name, Doc string
	Type      reflect.Type
	Fields    []Field
	// required has bit i set if Fields[i] is required; keys[i] is its name as written.
	required uint64
	keys     []string
	number   int // of the object among all
}

// objects is the number of objects, and fields that of their fields.
var objects, fields int

func describe[T any](name, doc string, list []Field) *Object {
	o := &Object{Name: name, Doc: doc, Type: reflect.TypeFor[T](), Fields: list, number: objects}
	objects++
	for i := range o.Fields {
		f := &o.Fields[i]
		fields++
		f.number = fields
		o.keys = append(o.keys, `"`+f.Name+`":`)
		if f.Required {
			o.required |= 1 << i
		}
	}
	return o
}
