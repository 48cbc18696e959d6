package gen

import "slices"

// SessionModel lets lengths change in the course of conversations.
type SessionModel struct {
	// PromptGrowthRate is the factor from turn to turn by which what users say
	// grows; absent, 1.
	PromptGrowthRate *float64 `yaml:"prompt_growth_rate" json:"prompt_growth_rate,omitempty"`
	// DecodeVariation lets the length of answers wander: those of a turn are
	// multiplied by the factor of the turn before, times a lognormal number of mean
	// 1 and of this coefficient of variation; absent, 0.
	DecodeVariation float64 `yaml:"decode_variation" json:"decode_variation,omitempty"`
}

// maxGrowth bounds the factor from turn to turn, and its variation.
const maxGrowth = 100

// checkSessionModel checks that of s.
func (s *Spec) checkSessionModel(fault fault) error {
	m := s.sessionModel()
	const path = "correlations.session_model"
	switch {
	case m == nil:
		return nil
	case !slices.ContainsFunc(s.Clients, func(c Client) bool { return c.MultiTurn != nil }):
		return fault(path, "changes nothing: no client has multi_turn")
	case m.PromptGrowthRate != nil && !(*m.PromptGrowthRate > 0 && *m.PromptGrowthRate <= maxGrowth):
		return fault(path+".prompt_growth_rate", "must be above 0 and at most %d, is %g", maxGrowth, *m.PromptGrowthRate)
	case !(m.DecodeVariation >= 0 && m.DecodeVariation <= maxGrowth):
		return fault(path+".decode_variation", "must be between 0 and %d, is %g", maxGrowth, m.DecodeVariation)
	}
	return nil
}

func (s *Spec) sessionModel() *SessionModel {
	if s.Correlations == nil {
		return nil
	}
	return s.Correlations.SessionModel
}
