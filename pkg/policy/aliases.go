package policy

import "strings"

// typeAliases maps alternative names of policies, and aliases of parameters, to those of this package.
var (
	typeAliases = map[string]string{"weighted-scoring": "weighted"}
	aliases     = map[string]string{"cache_affinity_weight": "prefix-affinity",
		"load_balance_weight": "active-requests", "queue_depth_weight": "queue-depth",
		"bucket_size": "capacity", "refill_rate": "refill_per_s",
		"scale_up_threshold": "up", "scale_down_threshold": "down"}
)

// advice says what to write instead of a parameter that does not exist.
var advice = map[string]string{
	"prefix_match_bonus": "a longer match already scores higher; raise the weight of prefix-affinity instead",
	"respect_priority":   "priority-fcfs always respects priorities and fcfs never does; remove it",
	"preemption_enabled": "a replica always preempts when its KV blocks run out; remove it",
	"preemption_policy":  "write preemption: {type: lowest-priority} next to scheduler instead",
	"cooldown_seconds":   "write cooldown: 60s next to params instead",
}

// CanonicalParam returns the name of the parameter for an alias, and any other name unchanged.
func CanonicalParam(name string) string {
	if canonical, ok := aliases[name]; ok {
		return canonical
	}
	return name
}

// replaceAliases replaces aliases by the names of this package, unless both are given.
func (s *Spec) replaceAliases() {
	if name, ok := typeAliases[s.Type]; ok {
		s.Type = name
	}
	for _, alias := range sortedKeys(s.Params) {
		name := CanonicalParam(alias)
		if _, both := s.Params[name]; !both {
			s.Params[name] = s.Params[alias]
			delete(s.Params, alias)
		}
	}
	if s.Type == "slo-based" {
		s.replaceScores()
	}
}

// replaceScores moves parameters such as realtime_score into the table of scores.
func (s *Spec) replaceScores() {
	for _, param := range sortedKeys(s.Params) {
		class, ok := strings.CutSuffix(param, "_score")
		if !ok || param == defaultScore {
			continue
		}
		scores, isTable := s.Params["scores"].(map[string]any)
		if scores == nil {
			scores = map[string]any{}
		}
		if _, both := scores[class]; both || !isTable && s.Params["scores"] != nil {
			continue // an error of Build
		}
		scores[class] = s.Params[param]
		s.Params["scores"] = scores
		delete(s.Params, param)
	}
}
