package script

import (
	"fmt"
	"math"

	"blis/pkg/expr"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// predeclared are the functions of programs. Those in brackets check limits: the checker inserts them.
var predeclared = func() starlark.StringDict {
	all := starlark.StringDict{}
	add := func(name string, f func(*starlark.Thread, starlark.Tuple) (starlark.Value, error)) {
		all[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
			kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(kwargs) > 0 {
				return nil, fmt.Errorf("%s has no argument %s", name, kwargs[0][0])
			}
			return f(t, args)
		})
	}
	for _, name := range []string{"abs", "all", "any", "bool", "float", "len", "list", "range", "reversed", "sorted",
		"tuple", "enumerate", "zip", "min", "max"} {
		all[name] = standard(name)
	}
	add("int", integer)
	add("sum", sum)
	for _, f := range expr.NumberFunctions() {
		if f.Name != "abs" && f.Name != "min" && f.Name != "max" {
			add(f.Name, numberFunction(f))
		}
	}
	add("(element)", func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) { return element(args[0]) })
	add("(number)", func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		if _, ok := number(args[0]); !ok {
			return nil, fmt.Errorf("this must be a number, is of type %s", args[0].Type())
		}
		return args[0], nil
	})
	add("(length)", func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return args[0], measure(t, args[0], 1)
	})
	add("(search)", func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		switch args[0].(type) {
		case *starlark.Dict, starlark.Mapping: // found by key
			return args[0], nil
		}
		return args[0], measure(t, args[0], 1)
	})
	add("(room)", func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		if n := starlark.Len(args[0]) + 1; n > maxLength {
			return nil, tooLong(args[0].Type(), n)
		}
		return args[0], nil
	})
	add("(object)", func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		switch args[0].(type) {
		case *starlark.List, *starlark.Dict, starlark.String:
			return nil, fmt.Errorf("a %s has no such field", args[0].Type())
		}
		return args[0], nil
	})
	add("(add)", addition)
	add("(multiply)", product)
	return all
}()

// standard is a function of Starlark. The lengths of its arguments are limited and count as steps.
func standard(name string) *starlark.Builtin {
	f := starlark.Universe[name].(*starlark.Builtin)
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (starlark.Value, error) {
		steps := 1
		switch name {
		case "len", "range":
			steps = 0
		case "sorted":
			steps = 16
		case "min", "max":
			if x := missing(args); x != nil {
				return x, nil
			}
		}
		for _, a := range args {
			if err := measure(t, a, steps); err != nil {
				return nil, err
			}
			if name == "zip" || name == "enumerate" {
				if err := flat(name, a); err != nil {
					return nil, err
				}
			}
		}
		return f.CallInternal(t, args, kwargs)
	})
}

// missing returns an argument that is NaN, as it is not in the order of numbers.
func missing(args starlark.Tuple) starlark.Value {
	for _, a := range args {
		if x, ok := a.(starlark.Float); ok && math.IsNaN(float64(x)) {
			return x
		}
	}
	return nil
}

// measure counts the length of v as steps, and fails if it is more than a list may have.
func measure(t *starlark.Thread, v starlark.Value, steps int) error {
	n := starlark.Len(v)
	if steps == 0 || n < 0 {
		return nil
	}
	if n > maxLength {
		return tooLong(v.Type(), n)
	}
	t.Steps += uint64(n * steps)
	return nil
}

func tooLong(what string, n int) error {
	return fmt.Errorf("a %s has %d elements, at most %d are allowed", what, n, maxLength)
}

// flat refuses sequences of tuples.
func flat(name string, v starlark.Value) error {
	list, ok := v.(starlark.Iterable)
	if !ok {
		return nil // the function says so
	}
	each := list.Iterate()
	defer each.Done()
	var x starlark.Value
	for each.Next(&x) {
		if _, ok := x.(starlark.Tuple); ok {
			return fmt.Errorf("%s takes no lists of tuples", name)
		}
	}
	return nil
}

// element returns a value that lists can hold.
func element(v starlark.Value) (starlark.Value, error) {
	switch v.(type) {
	case starlark.Iterable, starlark.Callable:
		return nil, fmt.Errorf("lists, tuples and dicts hold numbers, strings, True, False, None and objects; this is "+
			"of type %s", v.Type())
	}
	return v, nil
}

func number(v starlark.Value) (float64, bool) {
	switch v := v.(type) {
	case starlark.Float:
		return float64(v), true
	case starlark.Int:
		return float64(v.Float()), true
	}
	return 0, false
}

func integer(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("int takes one number")
	}
	if _, ok := number(args[0]); !ok {
		return nil, fmt.Errorf("int takes a number, not a value of type %s", args[0].Type())
	}
	return starlark.NumberToInt(args[0])
}

// sum adds numbers in their order.
func sum(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("sum takes one list")
	}
	list, ok := args[0].(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("sum takes a list, not a value of type %s", args[0].Type())
	}
	if err := measure(t, args[0], 1); err != nil {
		return nil, err
	}
	each := list.Iterate()
	defer each.Done()
	var v starlark.Value
	total := 0.0
	for each.Next(&v) {
		x, ok := number(v)
		if !ok {
			return nil, fmt.Errorf("sum takes numbers, not a value of type %s", v.Type())
		}
		total += x
	}
	return starlark.Float(total), nil
}

func numberFunction(f expr.NumberFunction) func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
	return func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		if len(args) != f.Args {
			return nil, fmt.Errorf("%s takes %d numbers, not %d", f.Name, f.Args, len(args))
		}
		var x [3]float64
		for i, a := range args {
			var ok bool
			if x[i], ok = number(a); !ok {
				return nil, fmt.Errorf("%s takes numbers, not a value of type %s", f.Name, a.Type())
			}
		}
		return starlark.Float(f.Call(x[:f.Args])), nil
	}
}

// addition is + of values that may be lists or strings.
func addition(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	n, m := starlark.Len(args[0]), starlark.Len(args[1])
	if n >= 0 && m >= 0 {
		if n+m > maxLength {
			return nil, tooLong(args[0].Type(), n+m)
		}
		t.Steps += uint64(n + m)
	}
	return starlark.Binary(syntax.PLUS, args[0], args[1])
}

// product is * of values that may be integers, lists or strings.
func product(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	a, aInt := args[0].(starlark.Int)
	b, bInt := args[1].(starlark.Int)
	if aInt && bInt {
		x, okX := a.Int64()
		y, okY := b.Int64()
		if p := x * y; okX && okY && (x == 0 || p/x == y && (x != -1 || y != math.MinInt64)) {
			return starlark.MakeInt64(p), nil
		}
		return nil, fmt.Errorf("%v * %v is not within the 64 bits of an integer; use float(x)", shown(a), shown(b))
	}
	list, times := args[0], b
	if aInt {
		list, times = args[1], a
	}
	if n := starlark.Len(list); n > 0 && (aInt || bInt) {
		k, ok := times.Int64()
		if !ok || k > maxLength/int64(n) {
			return nil, fmt.Errorf("a %s of %d elements times %v has more than %d elements, the limit", list.Type(), n,
				shown(times), maxLength)
		}
		t.Steps += uint64(max(k, 0)) * uint64(n)
	}
	return starlark.Binary(syntax.STAR, args[0], args[1])
}

// shown is a long integer in a few digits.
func shown(x starlark.Int) any {
	if _, ok := x.Int64(); ok {
		return x
	}
	return float64(x.Float())
}
