package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/expr"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// group is the fields with one first part of their names.
type group[T any] struct {
	name   string
	fields map[string]*expr.Field[T]
	inner  map[string]*group[T]
}

func newGroup[T any](name string, fields []expr.Field[T]) *group[T] {
	g := &group[T]{name, map[string]*expr.Field[T]{}, map[string]*group[T]{}}
	for i := range fields {
		rest, ok := strings.CutPrefix(fields[i].Name, name+".")
		if !ok {
			continue
		}
		if first, _, more := strings.Cut(rest, "."); more {
			g.inner[first] = newGroup(name+"."+first, fields)
		} else {
			g.fields[rest] = &fields[i]
		}
	}
	return g
}

// object is a group of the fields of a T.
type object[T any] struct {
	*group[T]
	at *T
}

func (o *object[T]) String() string        { return o.name }
func (o *object[T]) Type() string          { return o.name }
func (o *object[T]) Freeze()               {}
func (o *object[T]) Truth() starlark.Bool  { return true }
func (o *object[T]) Hash() (uint32, error) { return 0, fmt.Errorf("%s is no key of a dict", o.name) }
func (o *object[T]) AttrNames() []string   { return slices.Sorted(maps.Keys(o.fields)) }

// CompareSameType refuses comparisons: two objects may be the same replica.
func (o *object[T]) CompareSameType(syntax.Token, starlark.Value, int) (bool, error) {
	return false, fmt.Errorf("%s cannot be compared as a whole; compare its fields", o.name)
}

// Attr returns a field.
func (o *object[T]) Attr(name string) (starlark.Value, error) {
	f := o.fields[name]
	switch {
	case f == nil && o.inner[name] != nil:
		return &object[T]{o.inner[name], o.at}, nil
	case f == nil:
		return nil, nil
	case f.ByKey != nil || f.ByIndex != nil:
		return &elements[T]{f, o.at}, nil
	case f.Available != nil && !f.Available(o.at):
		return starlark.None, nil
	case f.Number != nil:
		return starlark.Float(f.Number(o.at)), nil
	case f.Text != nil:
		return starlark.String(f.Text(o.at)), nil
	}
	return starlark.Bool(f.Flag(o.at)), nil
}

// elements are those of a field that is a table or a list of numbers.
type elements[T any] struct {
	field *expr.Field[T]
	at    *T
}

func (e *elements[T]) String() string       { return e.field.Name }
func (e *elements[T]) Type() string         { return e.field.Name }
func (e *elements[T]) Freeze()              {}
func (e *elements[T]) Truth() starlark.Bool { return true }
func (e *elements[T]) Hash() (uint32, error) {
	return 0, fmt.Errorf("%s is no key of a dict", e.field.Name)
}

// Get returns the element with a key or an index.
func (e *elements[T]) Get(key starlark.Value) (starlark.Value, bool, error) {
	if e.field.ByKey != nil {
		s, ok := key.(starlark.String)
		if !ok {
			return nil, false, fmt.Errorf("the key of %s must be a string, is %s", e.field.Name, key.Type())
		}
		return starlark.Float(e.field.ByKey(e.at, string(s))), true, nil
	}
	i, err := starlark.AsInt32(key)
	if err != nil || i < 0 || i > maxLength {
		return nil, false, fmt.Errorf("the index of %s must be an integer between 0 and %d, is %s", e.field.Name,
			maxLength, key)
	}
	return starlark.Float(e.field.ByIndex(e.at, i)), true, nil
}

// List is a list of objects that functions over T can read.
type List[T any] interface {
	name() string
	fields() []fieldName
	parameter() parameter[T]
}

// parameter is the value of a parameter of a hook.
type parameter[T any] interface {
	value() starlark.Value
	set(*T)
}

func (o *object[T]) value() starlark.Value { return o }
func (o *object[T]) set(t *T)              { o.at = t }

// listOf describes a list whose objects are fields of an E.
type listOf[T, E any] struct {
	called, element string
	of              []expr.Field[E]
	length          func(*T) int
	at              func(*T, int) E
}

// NewList returns a list called name of the objects that begin with the name element, such as replicas and replica.
func NewList[T, E any](name, element string, fields []expr.Field[E], length func(*T) int,
	at func(*T, int) E) List[T] {
	return &listOf[T, E]{name, element, fields, length, at}
}

func (l *listOf[T, E]) name() string { return l.called }

func (l *listOf[T, E]) fields() (all []fieldName) {
	for i := range l.of {
		if strings.HasPrefix(l.of[i].Name, l.element+".") {
			all = append(all, fieldName{l.of[i].Name, l.of[i].Type, false})
		}
	}
	return all
}

func (l *listOf[T, E]) parameter() parameter[T] {
	return &list[T, E]{listOf: l, group: newGroup(l.element, l.of)}
}

// list is the value of a list: its objects are made on demand and used again by later calls.
type list[T, E any] struct {
	*listOf[T, E]
	group   *group[E]
	from    *T
	objects []*listed[E]
}

// listed is an object with its value.
type listed[E any] struct {
	object[E]
	held E
}

func (l *list[T, E]) value() starlark.Value { return l }
func (l *list[T, E]) set(t *T)              { l.from = t }

func (l *list[T, E]) String() string        { return l.called }
func (l *list[T, E]) Type() string          { return l.called }
func (l *list[T, E]) Freeze()               {}
func (l *list[T, E]) Truth() starlark.Bool  { return l.Len() > 0 }
func (l *list[T, E]) Hash() (uint32, error) { return 0, fmt.Errorf("%s is no key of a dict", l.called) }
func (l *list[T, E]) Len() int              { return l.length(l.from) }

func (l *list[T, E]) Index(i int) starlark.Value {
	for len(l.objects) <= i {
		l.objects = append(l.objects, &listed[E]{object: object[E]{group: l.group}})
	}
	o := l.objects[i]
	o.held = l.at(l.from, i)
	o.object.at = &o.held
	return &o.object
}

func (l *list[T, E]) Iterate() starlark.Iterator { return &iterator{of: l} }

// iterator goes over a sequence of constant length.
type iterator struct {
	of   starlark.Indexable
	next int
}

func (i *iterator) Next(v *starlark.Value) bool {
	if i.next >= i.of.Len() {
		return false
	}
	*v = i.of.Index(i.next)
	i.next++
	return true
}

func (*iterator) Done() {}

// names returns the names of all fields, those of objects in lists included.
func (s *Scope[T]) names() (all []fieldName) {
	for i := range s.Fields {
		f := &s.Fields[i]
		all = append(all, fieldName{f.Name, f.Type, f.ByKey != nil || f.ByIndex != nil})
	}
	for _, l := range s.Lists {
		for _, name := range l.fields() {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// parameters returns the names that parameters of hooks may have.
func (s *Scope[T]) parameters() (all []string) {
	for i := range s.Fields {
		first, _, _ := strings.Cut(s.Fields[i].Name, ".")
		if !slices.Contains(all, first) {
			all = append(all, first)
		}
	}
	for _, l := range s.Lists {
		all = append(all, l.name())
	}
	return all
}

// parameter makes the value of a parameter.
func (s *Scope[T]) parameter(name string) parameter[T] {
	for _, l := range s.Lists {
		if l.name() == name {
			return l.parameter()
		}
	}
	return &object[T]{group: newGroup(name, s.Fields)}
}
