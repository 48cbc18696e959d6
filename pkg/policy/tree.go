package policy

import (
	"fmt"

	"blis/pkg/expr"
)

// branch is a place in a decision tree over T with leaves of type L.
type branch[T, L any] struct {
	cond      *formula[T]
	yes, no   *branch[T, L]
	leaf      L
	rule      *Rule // of the leaf
	otherwise L     // what is done where cond fails
}

// grow makes the tree at n; leaf makes its leaves, otherwise is what is done
// where a condition fails.
func grow[T, L any](b *builder, n *Node, at string, signals []signal[T], otherwise L, leaf func(at string, n *Node) L) *branch[T, L] {
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
		return &branch[T, L]{cond: formulaAt(b, at+".if", n.If, signals, expr.Flag), otherwise: otherwise,
			yes: grow(b, n.Then, at+".then", signals, otherwise, leaf), no: grow(b, n.Else, at+".else", signals, otherwise, leaf)}
	case n.Then != nil || n.Else != nil:
		b.fail(at+".if", "must be given beside then and else")
	}
	x := leaf(at, n)
	return &branch[T, L]{leaf: x, rule: &Rule{Path: b.path + "." + at, Source: n.source()}}
}

// source is a leaf in a word.
func (n *Node) source() string {
	if n.Use != nil {
		return n.Use.Type
	}
	return fmt.Sprint(n.Value)
}

// shown is a leaf as errors show it.
func (n *Node) shown() string {
	if n.Use != nil {
		return n.Use.Type
	}
	return quoted(n.Value)
}

// find goes down to a leaf and counts it.
func (t *branch[T, L]) find(at *T) L {
	leaf, _ := t.reach(at)
	return leaf
}

// reach is find with the path of the leaf, or of the condition that failed.
func (t *branch[T, L]) reach(at *T) (leaf L, path string) {
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

// walk visits all leaves and conditions, a condition before what follows it.
func (t *branch[T, L]) walk(visit func(*branch[T, L])) {
	visit(t)
	if t.cond != nil {
		t.yes.walk(visit)
		t.no.walk(visit)
	}
}

// needs is what conditions and leaves need.
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

// rules are those of conditions and leaves.
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

// clone has counts of its own; leaf clones leaves.
func (t *branch[T, L]) clone(leaf func(L) L) *branch[T, L] {
	if t.cond != nil {
		return &branch[T, L]{cond: t.cond.clone(), yes: t.yes.clone(leaf), no: t.no.clone(leaf), otherwise: t.otherwise}
	}
	return &branch[T, L]{leaf: leaf(t.leaf), rule: &Rule{Path: t.rule.Path, Source: t.rule.Source}}
}
