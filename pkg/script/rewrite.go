package script

import (
	"math/big"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// guard returns a call of one of the checks in guards.
func guard(name string, at syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: name}, Lparen: at, Args: args, Rparen: at}
}

func (c *checker) statements(body []syntax.Stmt) {
	for _, s := range body {
		c.statement(s)
	}
}

func (c *checker) statement(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.LoadStmt:
		fail(s.Load, "load is not available in policies: a program has only its own text")
	case *syntax.WhileStmt:
		fail(s.While, "while is not available in policies; use for over a list or a range")
	case *syntax.ExprStmt:
		s.X = c.rewrite(s.X)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = c.rewrite(s.Result)
		}
	case *syntax.IfStmt:
		s.Cond = c.rewrite(s.Cond)
		c.statements(s.True)
		c.statements(s.False)
	case *syntax.ForStmt:
		c.loopTargets(s.Vars)
		s.X = c.rewrite(s.X)
		c.statements(s.Body)
	case *syntax.AssignStmt:
		c.assign(s)
	case *syntax.DefStmt:
		c.define(s)
	}
}

func (c *checker) define(s *syntax.DefStmt) {
	c.bind(s.Name)
	isHook := c.definitions[s.Name.Name] != nil && c.scope.outer == nil
	c.function(s.Params, s.Body, func() { c.statements(s.Body) }, isHook)
}

// function checks a function, whose body is rewritten by inside.
func (c *checker) function(params []syntax.Expr, body []syntax.Stmt, inside func(), isHook bool) {
	for i, p := range params {
		switch p := p.(type) {
		case *syntax.Ident:
			c.bind(p)
		case *syntax.BinaryExpr: // a default
			c.bind(p.X.(*syntax.Ident))
			p.Y = c.element(p.Y)
		default:
			fail(syntax.Start(params[i]), "* and ** are not available in policies; name the parameters")
		}
	}
	outerScope, outerExact, outerKnown := c.scope, c.exact, c.known
	c.scope = &names{outer: c.scope}
	c.infer(c.scope, params, body)
	c.exact = map[string]bool{}
	if isHook {
		for _, p := range params {
			c.exact[p.(*syntax.Ident).Name] = true
		}
		c.assignments(c.scope, body, func(name string, _ kind) { delete(c.exact, name) })
	}
	inside()
	c.scope, c.exact, c.known = outerScope, outerExact, outerKnown
}

// loopTargets checks the variables of a loop.
func (c *checker) loopTargets(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.Ident:
		c.bind(x)
	case *syntax.ParenExpr:
		c.loopTargets(x.X)
	case *syntax.TupleExpr:
		for _, t := range x.List {
			c.loopTargets(t)
		}
	default:
		fail(syntax.Start(x), "this must be a name, or names between commas")
	}
}

func (c *checker) assign(s *syntax.AssignStmt) {
	switch target := s.LHS.(type) {
	case *syntax.IndexExpr:
		allowed := []syntax.Token{syntax.EQ, syntax.PLUS_EQ, syntax.MINUS_EQ, syntax.SLASH_EQ, syntax.SLASHSLASH_EQ}
		if !slices.Contains(allowed, s.Op) {
			fail(s.OpPos, "%s is not available here; write x[i] = x[i] %s …", s.Op, s.Op-syntax.PLUS_EQ+syntax.PLUS)
		}
		target.X, target.Y = c.rewrite(target.X), c.rewrite(target.Y)
		if s.Op == syntax.EQ {
			s.RHS = c.element(s.RHS)
		} else {
			s.RHS = c.number(s.RHS)
		}
	case *syntax.DotExpr:
		fail(target.Dot, "fields cannot be changed")
	default:
		c.loopTargets(s.LHS)
		if s.Op == syntax.EQ {
			s.RHS = c.rewrite(s.RHS)
			return
		}
		y := s.RHS
		if c.kindOf(c.scope, y) < numeric {
			y = guard("(number)", s.OpPos, y)
		}
		s.RHS = c.binary(&syntax.BinaryExpr{X: s.LHS, OpPos: s.OpPos, Op: s.Op - syntax.PLUS_EQ + syntax.PLUS, Y: y})
		s.Op = syntax.EQ
	}
}

// element rewrites an expression whose value a list or a dict will hold.
func (c *checker) element(x syntax.Expr) syntax.Expr {
	k, at := c.kindOf(c.scope, x), syntax.Start(x)
	x = c.rewrite(x)
	if k >= scalar {
		return x
	}
	return guard("(element)", at, x)
}

// number rewrites an expression whose value must be a number.
func (c *checker) number(x syntax.Expr) syntax.Expr {
	k, at := c.kindOf(c.scope, x), syntax.Start(x)
	x = c.rewrite(x)
	if k >= numeric {
		return x
	}
	return guard("(number)", at, x)
}

// measured rewrites an expression whose length counts as steps.
func (c *checker) measured(x syntax.Expr) syntax.Expr {
	k, at := c.kindOf(c.scope, x), syntax.Start(x)
	x = c.rewrite(x)
	if k >= scalar {
		return x
	}
	return guard("(length)", at, x)
}

// searched rewrites an expression that in looks through.
func (c *checker) searched(x syntax.Expr) syntax.Expr {
	return guard("(search)", syntax.Start(x), c.rewrite(x))
}

// rewrite checks an expression and inserts guards.
func (c *checker) rewrite(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.Ident:
		c.refuse(x)
	case *syntax.Literal:
		if x.Token == syntax.BYTES {
			fail(x.TokenPos, "bytes are not available in policies")
		}
		if _, long := x.Value.(*big.Int); long {
			fail(x.TokenPos, "an integer has at most 64 bits; write it with a decimal point")
		}
	case *syntax.ParenExpr:
		x.X = c.rewrite(x.X)
	case *syntax.UnaryExpr:
		if x.Op != syntax.NOT && x.Op != syntax.MINUS && x.Op != syntax.PLUS {
			fail(x.OpPos, "%s is not available in policies", x.Op)
		}
		x.X = c.rewrite(x.X)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = c.rewrite(x.Cond), c.rewrite(x.True), c.rewrite(x.False)
	case *syntax.BinaryExpr:
		return c.binary(x)
	case *syntax.DotExpr:
		c.field(x)
		c.object(x)
	case *syntax.IndexExpr:
		c.compare(x.X, x.Y) // records the key of a table
		x.X, x.Y = c.rewrite(x.X), c.rewrite(x.Y)
	case *syntax.SliceExpr:
		x.X = c.measured(x.X)
		for _, part := range []*syntax.Expr{&x.Lo, &x.Hi, &x.Step} {
			if *part != nil {
				*part = c.rewrite(*part)
			}
		}
	case *syntax.ListExpr:
		c.elements(x.List)
	case *syntax.TupleExpr:
		c.elements(x.List)
	case *syntax.DictExpr:
		for _, e := range x.List {
			entry := e.(*syntax.DictEntry)
			entry.Key, entry.Value = c.element(entry.Key), c.element(entry.Value)
		}
	case *syntax.Comprehension:
		c.comprehension(x)
	case *syntax.LambdaExpr:
		c.function(x.Params, []syntax.Stmt{&syntax.ExprStmt{X: x.Body}}, func() { x.Body = c.rewrite(x.Body) }, false)
	case *syntax.CallExpr:
		c.call(x)
	}
	return x
}

// object rewrites the object of a field.
func (c *checker) object(x *syntax.DotExpr) {
	if d, ok := x.X.(*syntax.DotExpr); ok {
		c.object(d)
		return
	}
	id, ok := x.X.(*syntax.Ident)
	exact := ok && c.exact[id.Name]
	if x.X = c.rewrite(x.X); !exact && slices.Contains(standardMethods, x.Name.Name) {
		x.X = guard("(object)", x.Dot, x.X)
	}
}

// standardMethods are the names of the methods of lists, dicts and strings. A field may have such a name.
var standardMethods = slices.Concat((*starlark.List)(nil).AttrNames(), (*starlark.Dict)(nil).AttrNames(),
	starlark.String("").AttrNames())

func (c *checker) elements(list []syntax.Expr) {
	for i := range list {
		list[i] = c.element(list[i])
	}
}

func (c *checker) comprehension(x *syntax.Comprehension) {
	if entry, ok := x.Body.(*syntax.DictEntry); ok {
		entry.Key, entry.Value = c.element(entry.Key), c.element(entry.Value)
	} else {
		x.Body = c.element(x.Body)
	}
	for _, clause := range x.Clauses {
		switch clause := clause.(type) {
		case *syntax.ForClause:
			c.loopTargets(clause.Vars)
			clause.X = c.rewrite(clause.X)
		case *syntax.IfClause:
			clause.Cond = c.rewrite(clause.Cond)
		}
	}
}

func (c *checker) binary(x *syntax.BinaryExpr) syntax.Expr {
	a, b := c.kindOf(c.scope, x.X), c.kindOf(c.scope, x.Y)
	switch x.Op {
	case syntax.EQL, syntax.NEQ:
		c.compare(x.X, x.Y)
		c.compare(x.Y, x.X)
	case syntax.IN, syntax.NOT_IN:
		c.compare(x.X, x.Y)
	case syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX, syntax.LTLT, syntax.GTGT:
		fail(x.OpPos, "%s is not available in policies", x.Op)
	}
	switch x.Op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		if max(a, b) < scalar {
			x.X = c.measured(x.X)
		} else {
			x.X = c.rewrite(x.X)
		}
		x.Y = c.rewrite(x.Y)
		return x
	case syntax.IN, syntax.NOT_IN:
		x.X = c.rewrite(x.X)
		if list, ok := x.Y.(*syntax.ListExpr); ok && len(list.List) <= shortList {
			x.Y = c.rewrite(x.Y)
		} else {
			x.Y = c.searched(x.Y)
		}
		return x
	case syntax.PERCENT:
		x.X = c.number(x.X)
		x.Y = c.rewrite(x.Y)
		return x
	}
	x.X, x.Y = c.rewrite(x.X), c.rewrite(x.Y)
	switch {
	case x.Op == syntax.PLUS && max(a, b) < numeric:
		return guard("(add)", x.OpPos, x.X, x.Y)
	case x.Op == syntax.STAR && max(a, b) < floating:
		return guard("(multiply)", x.OpPos, x.X, x.Y)
	}
	return x
}

// shortList is the length of a list in the text that need not be measured.
const shortList = 16

func (c *checker) call(x *syntax.CallExpr) {
	if d, ok := x.Fn.(*syntax.DotExpr); ok {
		m, ok := methods[d.Name.Name]
		if !ok {
			c.field(d) // names the fields
			fail(d.Name.NamePos, "%s is a field and cannot be called", d.Name.Name)
		}
		at := syntax.Start(d.X)
		if d.X = c.rewrite(d.X); m.copies {
			d.X = guard("(length)", at, d.X)
		}
		if m.grows {
			d.X = guard("(room)", at, d.X)
			c.elements(x.Args)
			return
		}
	} else {
		x.Fn = c.rewrite(x.Fn)
	}
	for i, a := range x.Args {
		switch a := a.(type) {
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR || a.Op == syntax.STARSTAR {
				fail(a.OpPos, "* and ** are not available in policies; name the arguments")
			}
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ {
				a.Y = c.rewrite(a.Y)
				continue
			}
		}
		x.Args[i] = c.rewrite(x.Args[i])
	}
}
