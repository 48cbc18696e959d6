package script

import (
	"slices"

	"go.starlark.net/syntax"
)

// kind is what is known of a value. Each kind includes the later ones.
type kind uint8

const (
	anything kind = iota
	scalar        // a number, a string, True, False or None
	numeric
	floating
)

// names are the kinds of the variables of a function; outer is nil for those of the program.
type names struct {
	outer *names
	kinds map[string]kind
}

func (n *names) kind(name string) kind {
	if k, ok := n.kinds[name]; ok {
		return k
	}
	for o := n.outer; o != nil; o = o.outer {
		if k, ok := o.kinds[name]; ok {
			if o.outer == nil {
				return k
			}
			return anything // a variable of another function
		}
	}
	if name == "True" || name == "False" || name == "None" {
		return scalar
	}
	return anything
}

// infer finds the kinds of the variables that the statements bind: the smallest that all assignments allow. Those of
// parameters are not known.
func (c *checker) infer(n *names, parameters []syntax.Expr, body []syntax.Stmt) {
	n.kinds, c.known = map[string]kind{}, nil
	defer func() { c.known = map[syntax.Expr]kind{} }()
	changed := true
	set := func(name string, k kind) {
		old, ok := n.kinds[name]
		if !ok {
			old = floating
		}
		n.kinds[name] = min(old, k)
		changed = changed || !ok || n.kinds[name] != old
	}
	for changed {
		changed = false
		for _, p := range parameters {
			if id, ok := p.(*syntax.Ident); ok {
				set(id.Name, anything)
			} else if b, ok := p.(*syntax.BinaryExpr); ok {
				set(b.X.(*syntax.Ident).Name, anything)
			}
		}
		c.assignments(n, body, set)
	}
}

// assignments calls set for all names that the statements bind, without those of functions within.
func (c *checker) assignments(n *names, body []syntax.Stmt, set func(string, kind)) {
	for _, s := range body {
		syntax.Walk(s, func(node syntax.Node) bool {
			switch x := node.(type) {
			case *syntax.DefStmt:
				set(x.Name.Name, anything)
				return false
			case *syntax.LambdaExpr:
				return false
			case *syntax.AssignStmt:
				k := c.kindOf(n, x.RHS)
				if x.Op != syntax.EQ {
					k = c.kindOf(n, &syntax.BinaryExpr{X: x.LHS, Op: x.Op - syntax.PLUS_EQ + syntax.PLUS, Y: x.RHS})
				}
				bindTargets(x.LHS, k, set)
			case *syntax.ForStmt:
				c.bindElements(n, x.Vars, x.X, set)
			case *syntax.ForClause:
				c.bindElements(n, x.Vars, x.X, func(name string, k kind) {
					if n.outer.has(name) {
						k = anything // outside of the comprehension it is another variable
					}
					set(name, k)
				})
			}
			return true
		})
	}
}

// has reports whether the name is one of the scope or of an outer one.
func (n *names) has(name string) bool {
	for ; n != nil; n = n.outer {
		if _, ok := n.kinds[name]; ok {
			return true
		}
	}
	return false
}

// bindTargets binds the targets of an assignment.
func bindTargets(target syntax.Expr, k kind, set func(string, kind)) {
	switch t := target.(type) {
	case *syntax.Ident:
		set(t.Name, k)
	case *syntax.ParenExpr:
		bindTargets(t.X, k, set)
	case *syntax.TupleExpr:
		for _, x := range t.List {
			bindTargets(x, anything, set)
		}
	case *syntax.ListExpr:
		for _, x := range t.List {
			bindTargets(x, anything, set)
		}
	}
}

// bindElements binds the targets of a loop over x.
func (c *checker) bindElements(n *names, target, x syntax.Expr, set func(string, kind)) {
	switch x := x.(type) {
	case *syntax.CallExpr:
		tuple, isTuple := target.(*syntax.TupleExpr)
		switch name, _ := path(x.Fn); {
		case name == "range":
			bindTargets(target, numeric, set)
			return
		case name == "enumerate" && isTuple && len(tuple.List) == 2:
			bindTargets(tuple.List[0], numeric, set)
			bindTargets(tuple.List[1], anything, set)
			return
		}
	}
	bindTargets(target, anything, set)
}

// results of functions of numbers.
var numericFunctions = map[string]kind{"len": numeric, "int": numeric, "abs": numeric, "float": floating,
	"sum": floating, "exp": floating, "log": floating, "sqrt": floating, "pow": floating, "clamp": floating,
	"ema": floating, "bool": scalar, "all": scalar, "any": scalar}

// kindOf returns what is known of an expression that the checker has not changed.
func (c *checker) kindOf(n *names, x syntax.Expr) kind {
	k, ok := c.known[x]
	if !ok {
		if k = c.kindOfNew(n, x); c.known != nil {
			c.known[x] = k
		}
	}
	return k
}

func (c *checker) kindOfNew(n *names, x syntax.Expr) kind {
	switch x := x.(type) {
	case *syntax.Literal:
		return map[syntax.Token]kind{syntax.INT: numeric, syntax.FLOAT: floating, syntax.STRING: scalar}[x.Token]
	case *syntax.Ident:
		return n.kind(x.Name)
	case *syntax.ParenExpr:
		return c.kindOf(n, x.X)
	case *syntax.UnaryExpr:
		if x.Op == syntax.NOT {
			return scalar
		}
		return max(numeric, c.kindOf(n, x.X))
	case *syntax.CondExpr:
		return min(c.kindOf(n, x.True), c.kindOf(n, x.False))
	case *syntax.BinaryExpr:
		return c.kindOfBinary(n, x)
	case *syntax.DotExpr:
		return c.kindOfField(x)
	case *syntax.IndexExpr:
		if d, ok := x.X.(*syntax.DotExpr); ok && c.isIndexed(d) {
			return floating
		}
	case *syntax.CallExpr:
		if d, ok := x.Fn.(*syntax.DotExpr); ok && (d.Name.Name == "startswith" || d.Name.Name == "endswith") {
			return scalar
		}
		id, ok := x.Fn.(*syntax.Ident)
		if !ok {
			return anything
		}
		if id.Name != "min" && id.Name != "max" || len(x.Args) < 2 {
			return numericFunctions[id.Name]
		}
		all := floating
		for _, a := range x.Args {
			if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
				return anything // a key
			}
			all = min(all, c.kindOf(n, a))
		}
		return all
	}
	return anything
}

func (c *checker) kindOfBinary(n *names, x *syntax.BinaryExpr) kind {
	switch x.Op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE, syntax.IN, syntax.NOT_IN:
		return scalar
	case syntax.SLASH:
		return floating
	}
	a, b := c.kindOf(n, x.X), c.kindOf(n, x.Y)
	either := max(a, b)
	switch x.Op {
	case syntax.AND, syntax.OR:
		return min(a, b)
	case syntax.MINUS, syntax.SLASHSLASH, syntax.PERCENT: // of numbers only
		return max(numeric, either)
	case syntax.PLUS:
		if either >= numeric { // the other one is a number, too, or it is an error
			return either
		}
	case syntax.STAR:
		if either == floating || min(a, b) >= numeric {
			return either
		}
	}
	return anything
}

// kindOfField is the kind of a field, whichever object it is of.
func (c *checker) kindOfField(x *syntax.DotExpr) kind {
	k, found := floating, false
	for _, f := range c.fields {
		if s := f.suffix(); s != x.Name.Name && !hasSuffix(s, x.Name.Name) {
			continue
		}
		found = true
		switch {
		case f.indexed:
			k = anything
		case f.kind != "number":
			k = min(k, scalar)
		}
	}
	if !found {
		return anything
	}
	return k
}

func hasSuffix(name, last string) bool {
	return len(name) > len(last) && name[len(name)-len(last)-1:] == "."+last
}

func (c *checker) isIndexed(x *syntax.DotExpr) bool {
	i := slices.IndexFunc(c.fields, func(f fieldName) bool { return f.suffix() == x.Name.Name })
	return i >= 0 && c.fields[i].indexed
}
