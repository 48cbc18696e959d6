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
	lowest := v.Replicas[c.Candidate].Inflight
	if t.rule == tieLeastInflight {
		n = 0
		for i := c.Candidate; i < len(v.Replicas); i++ {
			if x := v.Replicas[i].Inflight; isBest(i) && (n == 0 || x <= lowest) {
				if n == 0 || x < lowest {
					c.Candidate, lowest, n = i, x, 0
				}
				n++
			}
		}
		if n == 1 {
			return
		}
	}
	c.Tied = n
	numbers := t.draws.of(v.Draw)
	least := numbers.at(int64(v.Replicas[c.Candidate].Index))
	for i := c.Candidate + 1; n > 1; i++ {
		if !isBest(i) || t.rule == tieLeastInflight && v.Replicas[i].Inflight != lowest {
			continue
		}
		n--
		if x := numbers.at(int64(v.Replicas[i].Index)); x < least {
			c.Candidate, least = i, x
		}
	}
}
