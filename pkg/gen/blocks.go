package gen

import "slices"

// block is an optional part of a client's spec.
type block struct {
	name  string
	given bool
}

// blocks returns the blocks that make a client send something other than single requests.
func (c *Client) blocks() []block {
	return []block{
		{"agentic", c.Agentic != nil},
		{"multi_turn", c.MultiTurn != nil},
		{"reasoning", c.Reasoning != nil},
		{"closed_loop", c.ClosedLoop != nil},
	}
}

// sends is the name of the first block given, "" if c sends single requests.
func (c *Client) sends() string {
	for _, b := range c.blocks() {
		if b.given {
			return b.name
		}
	}
	return ""
}

// newGenerator makes the generator of the client c.
func (s *Spec) newGenerator(c *Client, at field) generator {
	loop := s.closedLoop(c)
	switch {
	case c.Agentic != nil:
		return newAgentSessions(s.Seed, c, at)
	case c.MultiTurn != nil:
		return newConversations(s, c, at)
	case c.Reasoning != nil:
		return newReasoners(s.Seed, c, at)
	case loop != nil:
		return newClosedLoopUsers(s, c, loop, at)
	}
	return newSingleRequests(s.Seed, c, at)
}

// checkBlocks checks that the client c has at most one of the blocks, and no field that would have
// no effect.
func (s *Spec) checkBlocks(c *Client, at field) {
	sends := c.sends()
	for _, b := range c.blocks() {
		if b.given && b.name != sends {
			at.fail(b.name, "cannot be combined with %s: a client has one kind of traffic", sends)
		}
	}
	archetype, behavior := c.Archetype, ""
	if archetype == nil {
		archetype = &Archetype{}
	}
	if c.Behavior != nil {
		behavior = c.Behavior.Type
	}
	var ineffective []block
	reason := ""
	switch {
	case c.Agentic != nil:
		reason = "agentic: each step has its own lengths"
		ineffective = []block{
			{"multimodal", c.Multimodal != nil},
			{"input_distribution", c.InputDistribution.Type != ""},
			{"output_distribution", c.OutputDistribution.Type != ""},
			{"archetype.typical_prompt_size", archetype.TypicalPromptSize != ""},
			{"behavior", slices.Contains([]string{"abusive", adversarialName}, behavior)},
		}
	case s.closedLoop(c) != nil:
		reason = "a closed loop: its users wait for each response"
		ineffective = []block{
			{"behavior", behavior != "" && behavior != "normal"},
			{"archetype.burst_propensity", archetype.BurstPropensity > 0},
		}
	}
	for _, b := range ineffective {
		if b.given {
			at.fail(b.name, "cannot be combined with %s", reason)
		}
	}
}
