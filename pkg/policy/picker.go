package policy

// pickerParam says how the weighted router picks a replica once all candidates have scores: the
// pickers of llm-d (gateway-api-inference-extension v1.5.0, framework/plugins/scheduling/picker),
// each for one endpoint.
var pickerParam = Param{Name: "picker", Kind: Choose,
	Choices: []string{pickMaxScore, pickRandom, pickWeightedRandom}, Default: pickMaxScore,
	Doc: "the highest score, any candidate at random, or one at random with probabilities proportional " +
		"to the scores (llm-d's max-score-picker, random-picker, weighted-random-picker)"}

const (
	pickMaxScore       = "max-score"
	pickRandom         = "random"
	pickWeightedRandom = "weighted-random"
)

// highestScore is the reason of a choice by score.
const highestScore = "highest score"

// picker picks among scored candidates.
type picker struct {
	name  string
	draws draws
	ties  ties // of max-score
}

// picker returns the picker of the policy being built.
func (b *builder) picker(v values) picker {
	p := picker{v.choice(pickerParam.Name), b.draws(), b.ties(v)}
	if p.name != pickMaxScore {
		b.markUnused(v, tieParam, "the picker "+p.name+" has no ties")
	}
	return p
}

// pick chooses by the candidates' scores, which are at least 0.
func (p *picker) pick(v *View, scores []float64) Choice {
	switch p.name {
	case pickRandom:
		r := p.draws.of(v.Draw)
		i := r.intN(len(scores))
		return Choice{Candidate: i, Score: scores[i], Reason: "at random"}
	case pickWeightedRandom:
		r := p.draws.of(v.Draw)
		i := proportional(&r, scores)
		return Choice{Candidate: i, Score: scores[i], Reason: "at random by score"}
	}
	first, best, n := 0, scores[0], 0
	for i, s := range scores {
		if s > best {
			first, best, n = i, s, 0
		}
		if s == best {
			n++
		}
	}
	c := Choice{Candidate: first, Score: best, Reason: highestScore}
	p.ties.settle(&c, v, n, func(i int) bool { return scores[i] == c.Score })
	return c
}

// proportional draws a candidate with a probability proportional to its score; if all scores are 0,
// every candidate has the same. llm-d gives each candidate with a score s above 0 a key U^(1/s) of
// a uniform U and picks the highest (A-Res: Efraimidis and Spirakis, "Weighted random sampling with
// a reservoir", 2006). A single pick then has just these probabilities.
func proportional(r *rng, scores []float64) int {
	sum := 0.0
	for _, s := range scores {
		sum += s
	}
	if sum == 0 {
		return r.intN(len(scores))
	}
	x, last := float64(r.float()*sum), 0
	for i, s := range scores {
		if s == 0 {
			continue
		}
		if x < s {
			return i
		}
		x, last = x-s, i
	}
	return last // the differences were rounded
}
