package gen

import "slices"

// SessionModel changes lengths in the course of a conversation.
type SessionModel struct {
	PromptGrowthRate *float64 `yaml:"prompt_growth_rate" json:"prompt_growth_rate,omitempty"`
	DecodeVariation  float64  `yaml:"decode_variation" json:"decode_variation,omitempty"`
}

// maxGrowth bounds the factor from turn to turn and its variation.
const maxGrowth = 100

// checkSessionModel validates the session model of s.
func (s *Spec) checkSessionModel(errorf errorFunc) error {
	m := s.sessionModel()
	const path = "correlations.session_model"
	switch {
	case m == nil:
		return nil
	case !slices.ContainsFunc(s.Clients, func(c Client) bool { return c.MultiTurn != nil }):
		return errorf(path, "has no effect: no client has multi_turn")
	case m.PromptGrowthRate != nil && !(*m.PromptGrowthRate > 0 && *m.PromptGrowthRate <= maxGrowth):
		return errorf(path+".prompt_growth_rate", "must be above 0 and at most %d, is %g", maxGrowth,
			*m.PromptGrowthRate)
	case !(m.DecodeVariation >= 0 && m.DecodeVariation <= maxGrowth):
		return errorf(path+".decode_variation", "must be between 0 and %d, is %g", maxGrowth, m.DecodeVariation)
	}
	return nil
}

func (s *Spec) sessionModel() *SessionModel {
	if s.Correlations == nil {
		return nil
	}
	return s.Correlations.SessionModel
}
