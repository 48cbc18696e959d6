package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/registry"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// fieldName is a field that objects have.
type fieldName struct {
	name    string
	kind    expr.Type
	indexed bool
}

// suffix is the name without its first part.
func (f *fieldName) suffix() string { _, rest, _ := strings.Cut(f.name, "."); return rest }

// definition is a function that is a hook.
type definition struct {
	*syntax.DefStmt
	hook    *Hook
	results []expr.Literal
}

// signature is the name and the parameters of the function.
func (d *definition) signature() string {
	var names []string
	for _, p := range d.Params {
		names = append(names, p.(*syntax.Ident).Name)
	}
	return d.Name.Name + "(" + strings.Join(names, ", ") + ")"
}

// checker checks a program, inserts the checks of limits, and records what it reads.
type checker struct {
	fields     []fieldName
	hooks      []Hook
	parameters []string

	definitions map[string]*definition
	uses        []string
	compared    map[string][]expr.Literal
	// exact are the parameters of the hook around the present place, which are not assigned to: their fields are known.
	exact map[string]bool
	scope *names
	// known are the kinds of expressions, once those of the variables are inferred; nil before.
	known map[syntax.Expr]kind
}

// stop is the panic that ends a check.
type stop struct{ *expr.Error }

func fail(at syntax.Position, format string, args ...any) {
	panic(stop{&expr.Error{Line: max(1, int(at.Line)), Col: max(1, int(at.Col)), Msg: fmt.Sprintf(format, args...)}})
}

func (c *checker) check(file *syntax.File) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s, ok := r.(stop)
			if !ok {
				panic(r)
			}
			err = s.Error
		}
	}()
	c.definitions, c.compared, c.exact = map[string]*definition{}, map[string][]expr.Literal{}, map[string]bool{}
	c.findHooks(file)
	c.scope = &names{}
	c.infer(c.scope, nil, file.Stmts)
	c.statements(file.Stmts)
	slices.Sort(c.uses)
	c.uses = slices.Compact(c.uses)
	return nil
}

// findHooks records the functions that are hooks and checks their parameters.
func (c *checker) findHooks(file *syntax.File) {
	for _, s := range file.Stmts {
		def, ok := s.(*syntax.DefStmt)
		if !ok {
			continue
		}
		i := slices.IndexFunc(c.hooks, func(h Hook) bool {
			return def.Name.Name == h.Name || h.Prefix && strings.HasPrefix(def.Name.Name, h.Name)
		})
		if i < 0 {
			continue
		}
		for _, p := range def.Params {
			id, ok := p.(*syntax.Ident)
			if !ok {
				fail(syntax.Start(p), "the parameters of %s are names without defaults", def.Name.Name)
			}
			if !slices.Contains(c.parameters, id.Name) {
				fail(id.NamePos, "%v", registry.Unknown("parameter of "+def.Name.Name, id.Name, c.parameters))
			}
		}
		d := &definition{DefStmt: def, hook: &c.hooks[i]}
		d.results = results(def.Body)
		c.definitions[def.Name.Name] = d
	}
	if len(c.definitions) == 0 {
		var have []string
		for _, h := range c.hooks {
			have = append(have, h.Name)
		}
		panic(stop{&expr.Error{Line: 1, Col: 1, Msg: fmt.Sprintf("the program defines no function that is called here "+
			"(have %s)", strings.Join(have, ", "))}})
	}
}

// results returns the string literals that statements return.
func results(body []syntax.Stmt) (all []expr.Literal) {
	var of func(x syntax.Expr)
	of = func(x syntax.Expr) {
		switch x := x.(type) {
		case *syntax.ParenExpr:
			of(x.X)
		case *syntax.CondExpr:
			of(x.True)
			of(x.False)
		case *syntax.Literal:
			if s, ok := x.Value.(string); ok && x.Token == syntax.STRING {
				all = append(all, expr.Literal{Text: s, Line: int(x.TokenPos.Line), Col: int(x.TokenPos.Col)})
			}
		}
	}
	for _, s := range body {
		switch s := s.(type) {
		case *syntax.ReturnStmt:
			of(s.Result)
		case *syntax.IfStmt:
			all = append(append(all, results(s.True)...), results(s.False)...)
		case *syntax.ForStmt:
			all = append(all, results(s.Body)...)
		}
	}
	return all
}

// functionNames are the names of the functions that programs have.
func functionNames() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(predeclared)) {
		if !strings.HasPrefix(name, "(") {
			all = append(all, name)
		}
	}
	return all
}

// methods are those that programs have. No field has such a name.
var methods = map[string]struct{ grows, copies bool }{
	"append": {grows: true}, "insert": {grows: true}, "setdefault": {grows: true},
	"pop": {}, "clear": {}, "get": {}, "startswith": {}, "endswith": {},
	"items": {copies: true}, "keys": {copies: true}, "values": {copies: true},
}

// bind checks a name that the program gives to something.
func (c *checker) bind(x *syntax.Ident) {
	if _, ok := predeclared[x.Name]; ok {
		fail(x.NamePos, "%s is a function of programs; choose another name", x.Name)
	}
	c.refuse(x)
}

// refuse rejects functions of Starlark that programs do not have.
func (c *checker) refuse(x *syntax.Ident) {
	if _, ok := predeclared[x.Name]; ok || x.Name == "None" || x.Name == "True" || x.Name == "False" {
		return
	}
	if _, ok := starlark.Universe[x.Name]; ok {
		fail(x.NamePos, "%s is not available in policies (have %s)", x.Name, strings.Join(functionNames(), ", "))
	}
}

// path returns the dotted name that x is, and its first part; nil if x does not begin with a name.
func path(x syntax.Expr) (name string, root *syntax.Ident) {
	switch x := x.(type) {
	case *syntax.Ident:
		return x.Name, x
	case *syntax.DotExpr:
		name, root = path(x.X)
		return name + "." + x.Name.Name, root
	}
	return "", nil
}

// field records the fields that x, which is not the object of another field, can be. Where the object is a parameter
// of the hook, it is one field.
func (c *checker) field(x *syntax.DotExpr) {
	var parts []string
	var object syntax.Expr = x
	for d, ok := object.(*syntax.DotExpr); ok; d, ok = object.(*syntax.DotExpr) {
		parts, object = append(parts, d.Name.Name), d.X
	}
	slices.Reverse(parts)
	suffix, group := strings.Join(parts, "."), ""
	if id, ok := object.(*syntax.Ident); ok && c.exact[id.Name] {
		group = id.Name
	}
	var have []string
	found := false
	for _, f := range c.fields {
		first, _, _ := strings.Cut(f.name, ".")
		if group != "" && first != group {
			continue
		}
		have = append(have, f.suffix())
		if f.suffix() == suffix {
			c.uses, found = append(c.uses, f.name), true
		}
	}
	if found {
		return
	}
	if id, ok := object.(*syntax.Ident); ok && group == "" && !c.scope.has(id.Name) {
		fail(id.NamePos, "%v", registry.Unknown("name", id.Name, functionNames()))
	}
	slices.Sort(have)
	have = slices.Compact(have)
	what := "field"
	if group != "" {
		what = "field of " + group
	}
	if _, ok := methods[parts[len(parts)-1]]; ok {
		fail(x.Name.NamePos, "%s is a method, which must be called", parts[len(parts)-1])
	}
	if longer := slices.DeleteFunc(slices.Clone(have), func(s string) bool {
		return !strings.HasPrefix(s, suffix+".")
	}); len(longer) > 0 {
		fail(x.Name.NamePos, "%q is only part of a name (have %s)", suffix, strings.Join(longer, ", "))
	}
	fail(x.Name.NamePos, "%v", registry.Unknown(what, suffix, have))
}

// compare records the literals that a field is compared with.
func (c *checker) compare(field, with syntax.Expr) {
	name, root := path(field)
	if root == nil {
		return
	}
	literals := []syntax.Expr{with}
	if list, ok := with.(*syntax.ListExpr); ok {
		literals = list.List
	}
	for _, x := range literals {
		if l, ok := x.(*syntax.Literal); ok && l.Token == syntax.STRING {
			c.compared[name] = append(c.compared[name],
				expr.Literal{Text: l.Value.(string), Line: int(l.TokenPos.Line), Col: int(l.TokenPos.Col)})
		}
	}
}
