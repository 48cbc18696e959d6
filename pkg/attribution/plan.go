package attribution

import (
	"encoding/json"

	"blis/pkg/stream"
)

// plan is what matters here of the configuration that a run's header carries. That of
// a recording is empty.
type plan struct {
	Deployments []struct {
		ID       string `json:"id"`
		Model    string `json:"model"`
		Replicas int    `json:"replicas"`
		Engine   struct {
			BlockSize int64 `json:"block_size"`
			Seats     int32 `json:"max_num_seqs"`
		} `json:"engine"`
		Computed struct {
			Blocks int64 `json:"kv_blocks"`
		} `json:"computed"`
	} `json:"deployments"`
	Policies map[string]struct {
		Type string `json:"type"`
	} `json:"policies"`

	// replicas have numbers, from 0, in the order of the file.
	numbers  map[place]int32
	replicas []place
	// models has the numbers of the replicas that serve each model; who names none gets
	// the first deployment's.
	models map[string][]int32
	first  string
}

// place is a replica by its name.
type place struct {
	deployment string
	index      stream.Index
}

func newPlan(h *stream.Header) plan {
	p := plan{numbers: map[place]int32{}, models: map[string][]int32{}}
	if h.Run == nil {
		return p
	}
	// What does not look like a configuration says nothing; its reader has checked it.
	if text, err := json.Marshal(h.Run.Config); err == nil {
		_ = json.Unmarshal(text, &p)
	}
	for _, d := range p.Deployments {
		for i := range d.Replicas {
			n := p.number(d.ID, stream.Index(i))
			p.models[d.Model] = append(p.models[d.Model], n)
		}
	}
	if len(p.Deployments) > 0 {
		p.first = p.Deployments[0].Model
	}
	return p
}

// number returns the number of a replica, a new one if need be; -1 is nowhere.
func (p *plan) number(deployment string, index stream.Index) int32 {
	if index.IsZero() {
		return nowhere
	}
	at := place{deployment, index}
	n, ok := p.numbers[at]
	if !ok {
		n = int32(len(p.replicas))
		p.numbers[at] = n
		p.replicas = append(p.replicas, at)
	}
	return n
}

// peers are the replicas that could serve a request of that model, which was sent to
// replica n.
func (p *plan) peers(model string, n int32) []int32 {
	if model == "" {
		model = p.first
	}
	if all := p.models[model]; len(all) > 0 {
		return all
	}
	return []int32{n}
}

// policy is the type of the policy of a stage, "" if it is not known.
func (p *plan) policy(stage string) string { return p.Policies[stage].Type }

// block is how many tokens a block of a replica holds.
func (p *plan) block(n int32) int64 {
	for _, d := range p.Deployments {
		if n != nowhere && d.ID == p.replicas[n].deployment {
			return d.Engine.BlockSize
		}
	}
	return 0
}

// room is how many requests a batch of replica n holds, and how many blocks its cache; 0
// where that is not known.
func (p *plan) room(n int32) (seats int32, blocks int64) {
	for i := range p.Deployments {
		if d := &p.Deployments[i]; n != nowhere && d.ID == p.replicas[n].deployment {
			return d.Engine.Seats, d.Computed.Blocks
		}
	}
	return 0, 0
}

// peersOf are the replicas of the same deployment as replica n.
func (p *plan) peersOf(n int32) (all []int32) {
	for k, at := range p.replicas {
		if at.deployment == p.replicas[n].deployment {
			all = append(all, int32(k))
		}
	}
	return all
}

// Policies are the stages of the control plane and the types of their policies, in the
// order in which a request meets them; those that are not known are left out.
func (in *Analyzer) Policies() (all [][2]string) {
	for _, stage := range []string{"admission", "priority", "routing", "scheduler", "preemption"} {
		if policy := in.plan.policy(stage); policy != "" {
			all = append(all, [2]string{stage, policy})
		}
	}
	return all
}
