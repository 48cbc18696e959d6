package reference

// threshold is the advice of that policy, with the value that it compares of the replicas that serve.
func (s *simulation) threshold(x *scaler, value float64, serving, current int) int {
	c := x.config
	over, under := value > c.Up, value < c.Down
	if c.Inclusive {
		over, under = value >= c.Up, value <= c.Down
	}
	if serving == 0 {
		over, under = false, false
	}
	advice := current
	if c.Cancel {
		advice = serving
	}
	wants := over || under
	if over {
		advice += c.Step
	} else if under {
		if shared := value * float64(advice) / float64(max(1, advice-c.Step)); !c.CheckRemoval || shared < c.Up {
			advice -= c.Step
		}
	}
	return s.settled(x, advice, wants, serving, current)
}

// settled is the advice, if it holds while replicas start or drain.
func (s *simulation) settled(x *scaler, advice int, wants bool, serving, current int) int {
	c, before := x.config, x.removing
	x.removing = [3]int{}
	if !wants {
		return current
	}
	starting := current - serving
	if !c.Settle || starting == 0 && len(s.inStates(x, "draining")) == 0 {
		return advice
	}
	if advice = max(advice, c.Min); len(s.inStates(x, "draining")) > 0 || !c.Cancel || advice > serving {
		return current
	}
	x.removing = [3]int{advice, serving, starting}
	if x.removing != before {
		return current
	}
	return advice
}
