package policy

import (
	"fmt"

	"blis/pkg/expr"
)

// branch is a node of a decision tree over T with leaves of type L.
type branch[T, L any] struct {
	cond      *formula[T]
	yes, no   *branch[T, L]
	leaf      L
	rule      *Rule // of the leaf
	otherwise L     // the result if cond fails to evaluate
}

// buildTree builds the tree at n; leaf builds its leaves, otherwise is the result where a condition
// fails to evaluate.
func buildTree[T, L any](b *builder, n *Node, at string, signals []signal[T], otherwise L,
	leaf func(at string, n *Node) L) *branch[T, L] {
	if b.depth++; b.depth > maxDepth {
		b.fail(at, "nests deeper than %d levels", maxDepth)
	}
	defer func() { b.depth-- }()
	switch {
	case n == nil:
		b.fail(at, "must be a condition {if, then, else} or a leaf")
	case n.If != "":
		if n.Use != nil {
			b.fail(at+".use", "a condition has then and else, each with a leaf or another condition")
		}
		return &branch[T, L]{cond: newFormula(b, at+".if", n.If, signals, expr.Flag), otherwise: otherwise,
			yes: buildTree(b, n.Then, at+".then", signals, otherwise,
				leaf), no: buildTree(b, n.Else, at+".else", signals, otherwise, leaf)}
	case n.Then != nil || n.Else != nil:
		b.fail(at+".if", "must be given with then and else")
	}
	x := leaf(at, n)
	return &branch[T, L]{leaf: x, rule: &Rule{Path: b.path + "." + at, Source: n.source()}}
}

// source returns a leaf as a word.
func (n *Node) source() string {
	if n.Use != nil {
		return n.Use.Type
	}
	return fmt.Sprint(n.Value)
}

// describe returns a leaf as shown in errors.
func (n *Node) describe() string {
	if n.Use != nil {
		return n.Use.Type
	}
	return quoted(n.Value)
}

// eval evaluates the tree and counts the leaf.
func (t *branch[T, L]) eval(at *T) L {
	leaf, _ := t.evalPath(at)
	return leaf
}

// evalPath also returns the path of the leaf, or of the condition that failed.
func (t *branch[T, L]) evalPath(at *T) (leaf L, path string) {
	for t.cond != nil {
		yes, ok := t.cond.flag(at)
		switch {
		case !ok:
			return t.otherwise, t.cond.rule.Path
		case yes:
			t = t.yes
		default:
			t = t.no
		}
	}
	t.rule.Evaluated++
	t.rule.Hits++
	return t.leaf, t.rule.Path
}

// walk visits all leaves and conditions, each condition before its branches.
func (t *branch[T, L]) walk(visit func(*branch[T, L])) {
	visit(t)
	if t.cond != nil {
		t.yes.walk(visit)
		t.no.walk(visit)
	}
}

// needs returns what conditions and leaves need.
func (t *branch[T, L]) needs(of func(L) Needs) (n Needs) {
	t.walk(func(b *branch[T, L]) {
		if b.cond != nil {
			n |= b.cond.needs
		} else {
			n |= of(b.leaf)
		}
	})
	return n
}

// rules returns the rules of conditions and leaves.
func (t *branch[T, L]) rules(of func(L) []*Rule) (all []*Rule) {
	t.walk(func(b *branch[T, L]) {
		if b.cond != nil {
			all = append(all, b.cond.rule)
			return
		}
		all = append(all, b.rule)
		all = append(all, of(b.leaf)...)
	})
	return all
}

// clone returns a copy with its own counts; leaf clones leaves.
func (t *branch[T, L]) clone(leaf func(L) L) *branch[T, L] {
	if t.cond != nil {
		return &branch[T, L]{cond: t.cond.clone(), yes: t.yes.clone(leaf), no: t.no.clone(leaf), otherwise: t.otherwise}
	}
	return &branch[T, L]{leaf: leaf(t.leaf), rule: &Rule{Path: t.rule.Path, Source: t.rule.Source}}
}
