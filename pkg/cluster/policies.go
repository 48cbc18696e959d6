package cluster

import (
	"blis/pkg/named"
	"blis/pkg/policy"
)

// Policies names the policy of each stage.
type Policies struct {
	Admission  policy.Spec `yaml:"admission" json:"admission"`
	Priority   policy.Spec `yaml:"priority" json:"priority"`
	Routing    policy.Spec `yaml:"routing" json:"routing"`
	Scheduler  policy.Spec `yaml:"scheduler" json:"scheduler"`
	Preemption policy.Spec `yaml:"preemption" json:"preemption"`
}

// stage is one policy of the control plane: where files have it, what it is if
// they do not say, and what it can be where that is all there is to check.
type stage struct {
	path, what string
	spec       *policy.Spec
	otherwise  string
	choices    named.Table[struct{}]
}

func (p *Policies) stages() []stage {
	return []stage{
		{"policies.admission", "admission policy", &p.Admission, "always-admit", policy.Admissions},
		{"policies.priority", "priority policy", &p.Priority, "constant", policy.Priorities},
		{"policies.routing", "routing policy", &p.Routing, "round-robin", nil},
		{"policies.scheduler", "scheduler", &p.Scheduler, "fcfs", policy.Schedulers},
		{"policies.preemption", "preemption policy", &p.Preemption, "last-in", policy.Preemptions},
	}
}

// fill names the policies that the file leaves out, and the parameters that
// these then have.
func (p *Policies) fill() {
	for _, s := range p.stages() {
		if s.spec.Type == "" {
			s.spec.Type = s.otherwise
		}
		if len(s.spec.Params) == 0 {
			s.spec.Params = policy.Defaults(s.spec.Type)
		}
	}
}

// forget drops the parameters of every policy that has another type than
// before: they were the other one's.
func (p *Policies) forget(before Policies) {
	old := before.stages()
	for i, s := range p.stages() {
		if s.spec.Type != old[i].spec.Type {
			s.spec.Params = nil
		}
	}
}

func (p *Policies) validate(fault fault) error {
	if _, err := policy.NewRouter(p.Routing); err != nil {
		return fault("policies.routing", "%v", err)
	}
	for _, s := range p.stages() {
		if s.choices == nil {
			continue
		}
		if _, err := s.choices.Get(s.what, s.spec.Type); err != nil {
			return fault(s.path+".type", "%v", err)
		}
		if err := s.spec.Check(); err != nil {
			return fault(s.path+".params", "%v", err)
		}
	}
	return nil
}
