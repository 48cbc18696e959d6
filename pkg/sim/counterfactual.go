package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"blis/pkg/stream"
)

// Counterfactual says which alternatives to decisions are evaluated. The zero value is none.
type Counterfactual struct {
	// top is the number of candidates listed in an estimate.
	top int
	// worst is the number of highest-regret decisions to re-simulate; named are the decisions to
	// re-simulate instead.
	worst int
	named []int64
	// all: re-simulate all candidates, not only the best three.
	all bool
	// text is the option as given.
	text string
}

// UnmarshalText reads K (estimates for the K best candidates), exact:N, exact:N:all, or decision
// ids.
func (c *Counterfactual) UnmarshalText(text []byte) error {
	if err := c.parse(string(text)); err != nil {
		return err
	}
	c.text = string(text)
	return nil
}

func (c *Counterfactual) parse(text string) error {
	number, exact := strings.CutPrefix(text, "exact:")
	all := false
	if exact {
		number, all = strings.CutSuffix(number, ":all")
	}
	n, err := strconv.ParseUint(number, 10, 31)
	switch {
	case err == nil && n > 0 && exact:
		*c = Counterfactual{top: maxAlternatives + 1, worst: int(n), all: all}
		return nil
	case err == nil && n > 0:
		*c = Counterfactual{top: int(n)}
		return nil
	case strings.HasPrefix(text, decisionPrefix):
		*c = Counterfactual{top: maxAlternatives + 1}
		for _, id := range strings.Split(text, ",") {
			digits, ok := strings.CutPrefix(id, decisionPrefix)
			n, err := strconv.ParseUint(digits, 10, 63)
			if err != nil || !ok {
				return fmt.Errorf("%q is not a decision id such as %s000913", id, decisionPrefix)
			}
			c.named = append(c.named, int64(n))
		}
		return nil
	}
	return fmt.Errorf("is %q; must be a number of candidates (3), exact:N, exact:N:all or decision ids "+
		"(%[2]s000913,%[2]s000914)", text, decisionPrefix)
}

// enabled reports whether alternatives are evaluated.
func (c *Counterfactual) enabled() bool { return c.top > 0 }

// exact reports whether decisions are re-simulated.
func (c *Counterfactual) exact() bool { return c.worst > 0 || len(c.named) > 0 }

// Contradiction reports counterfactual options that exclude each other.
func (o *Options) Contradiction() error {
	c := &o.Counterfactual
	switch {
	case c.enabled() && o.Trace == stream.TraceLevels[0]:
		return errors.New(
			"--counterfactual needs decisions, which --trace minimal does not write; use --trace decisions")
	case o.CounterfactualHorizon != nil && !c.exact():
		return errors.New("--counterfactual-horizon needs --counterfactual exact:N or decision ids")
	}
	return nil
}

// maxAlternatives is the number of alternative candidates that are re-simulated, unless all are.
const maxAlternatives = 3
