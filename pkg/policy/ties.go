package policy

import (
	"slices"
	"strings"
)

// tieParam says which of several candidates with the best score is chosen.
var tieParam = Param{Name: "tie", Kind: Choose, Choices: []string{tieRandom, tieFirst, tieLeastInflight},
	Default: tieRandom,
	Doc: "of several candidates with the best score: one at random, the one with the lowest index, " +
		"or the one with the fewest requests in flight (of several, one at random)"}

var tieParams = []Param{tieParam}

const (
	tieRandom        = "random"
	tieFirst         = "first"
	tieLeastInflight = "least-inflight"
)

// ties chooses among the candidates with the best score. By default each of them is equally likely,
// as with llm-d's max-score-picker, which shuffles the candidates and then sorts them by score
// (gateway-api-inference-extension v1.5.0, picker/max_score_picker.go). The lowest index instead
// would leave half of a lightly loaded pool idle.
//
// The random numbers come from a stream of their own. In each decision every replica has a number, and
// the lowest one wins: the shuffled order in which llm-d would list the replicas. So the choice stays
// the same if other candidates join the tie or leave it, except where that is the winner.
type ties struct {
	rule  string
	draws draws
}

// ties returns the tie rule of the policy being built. A policy within another has its own stream.
func (b *builder) ties(v values) ties { return b.tiesBy(v.choice(tieParam.Name)) }

// tiesBy is ties with a given rule.
func (b *builder) tiesBy(rule string) ties {
	return ties{rule, draws(b.env.Seed("ties" + strings.TrimPrefix(b.path, "routing")))}
}

// inheritTie gives the tie of a filter or a tree to the policies directly within it that have ties
// and do not set the parameter.
func inheritTie[P any](s *Spec, t table[P]) {
	tie, given := s.Params[tieParam.Name]
	if !given {
		return
	}
	for _, inner := range s.inner() {
		i := slices.Index(t.Names(), inner.Type)
		if i < 0 || !t[i].Value.hasTies() {
			continue
		}
		if inner.Params == nil {
			inner.Params = map[string]any{}
		}
		if _, given := inner.Params[tieParam.Name]; !given {
			inner.Params[tieParam.Name] = tie
		}
	}
}

// hasTies reports whether a policy has the parameter tie.
func (k *policyKind[P]) hasTies() bool {
	return k.passesTie || slices.ContainsFunc(k.params, func(p Param) bool { return p.Name == tieParam.Name })
}

// checkInheritedTie reports the tie of a filter that the policy it uses does not have.
func (b *builder) checkInheritedTie(s *Spec) {
	tie := s.Params[tieParam.Name]
	switch used, has := s.Use.Params[tieParam.Name]; {
	case !has:
		b.unused = append(b.unused, Unused{b.path + ".params." + tieParam.Name, s.Use.Type + " has no ties"})
	case used != tie:
		b.unused = append(b.unused,
			Unused{b.path + ".params." + tieParam.Name, "use.params.tie is " + quoted(used)})
	}
}

// settle chooses one of the n candidates for which isBest is true. c.Candidate is the first of them.
func (t *ties) settle(c *Choice, v *View, n int, isBest func(i int) bool) {
	if n == 1 || t.rule == tieFirst {
		return
	}
	d := tieDraw{ties: t, numbers: t.draws.of(v.Draw)}
	for i := c.Candidate; n > 0; i++ {
		if isBest(i) {
			n--
			d.add(v, i)
		}
	}
	d.settle(c)
}

// choose chooses one of the candidates in tied, which are in no order.
func (t *ties) choose(c *Choice, v *View, tied []int32) {
	if c.Candidate = int(slices.Min(tied)); len(tied) == 1 || t.rule == tieFirst {
		return
	}
	d := tieDraw{ties: t, numbers: t.draws.of(v.Draw)}
	for _, i := range tied {
		d.add(v, int(i))
	}
	d.settle(c)
}

// tieDraw is the draw between the n candidates that are added and tied: all, or those with the fewest requests in
// flight.
type tieDraw struct {
	*ties
	numbers  rng
	n        int
	inflight int32
	// candidate has the lowest number.
	candidate int
	lowest    uint64
}

func (d *tieDraw) add(v *View, i int) {
	r := &v.Replicas[i]
	if d.rule == tieLeastInflight {
		if d.n > 0 && r.Inflight > d.inflight {
			return
		}
		if r.Inflight < d.inflight {
			d.n = 0
		}
		d.inflight = r.Inflight
	}
	d.n++
	if x := d.numbers.at(int64(r.Index)); d.n == 1 || x < d.lowest {
		d.candidate, d.lowest = i, x
	}
}

// settle sets the choice.
func (d *tieDraw) settle(c *Choice) {
	if c.Candidate = d.candidate; d.n > 1 {
		c.Tied = d.n
	}
}
