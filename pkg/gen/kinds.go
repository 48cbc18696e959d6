package gen

import "slices"

// block is a part of a client's spec, by its name.
type block struct {
	name  string
	given bool
}

// blocks are those that say what a client sends other than single requests.
func (c *Client) blocks() []block {
	return []block{
		{"agentic", c.Agentic != nil},
		{"multi_turn", c.MultiTurn != nil},
		{"reasoning", c.Reasoning != nil},
		{"closed_loop", c.ClosedLoop != nil},
	}
}

// sends is the name of the block that says what c sends, "" if it sends single
// requests.
func (c *Client) sends() string {
	for _, b := range c.blocks() {
		if b.given {
			return b.name
		}
	}
	return ""
}

// newMaker makes what c sends, which stands at path.
func (s *Spec) newMaker(c *Client, path string, fault fault) (maker, error) {
	loop := s.closedLoop(c)
	switch {
	case c.Agentic != nil:
		return newAgents(s.Seed, c, path, fault)
	case c.MultiTurn != nil:
		return newChats(s, c, path, fault)
	case c.Reasoning != nil:
		return newThinkers(s.Seed, c, path, fault)
	case loop != nil:
		return newUsers(s, c, loop, path, fault)
	}
	return newCompletions(s.Seed, c, path, fault)
}

// checkBlocks: c, which stands at path, sends in one way, and nothing stands
// beside it that changes nothing.
func (s *Spec) checkBlocks(c *Client, path string, fault fault) error {
	sends := c.sends()
	for _, b := range c.blocks() {
		if b.given && b.name != sends {
			return fault(path+"."+b.name, "must not stand beside %s: a client sends in one way", sends)
		}
	}
	archetype, behavior := c.Archetype, ""
	if archetype == nil {
		archetype = &Archetype{}
	}
	if c.Behavior != nil {
		behavior = c.Behavior.Type
	}
	var idle []block
	why := ""
	switch {
	case c.Agentic != nil:
		why = "agentic: each step has lengths of its own"
		idle = []block{
			{"multimodal", c.Multimodal != nil},
			{"input_distribution", c.InputDistribution.Type != ""},
			{"output_distribution", c.OutputDistribution.Type != ""},
			{"archetype.typical_prompt_size", archetype.TypicalPromptSize != ""},
			{"behavior", slices.Contains([]string{"abusive", adversarialName}, behavior)},
		}
	case s.closedLoop(c) != nil:
		why = "a closed loop: its users wait for each answer"
		idle = []block{
			{"behavior", behavior != "" && behavior != "normal"},
			{"archetype.burst_propensity", archetype.BurstPropensity > 0},
		}
	}
	for _, b := range idle {
		if b.given {
			return fault(path+"."+b.name, "must not stand beside %s", why)
		}
	}
	return nil
}
