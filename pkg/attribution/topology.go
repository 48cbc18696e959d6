package attribution

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"blis/pkg/stream"
)

// topology is what matters here of the configuration in a run's header: replicas, models and
// policies. That of a benchmark recording is empty.
type topology struct {
	Deployments []deployment `json:"deployments"`
	Policies    map[string]struct {
		Type string `json:"type"`
	} `json:"policies"`
	ControlPlane struct {
		AdmissionLatencyUS int64 `json:"admission_latency_us"`
		RoutingLatencyUS   int64 `json:"routing_latency_us"`
		ShadowBlocks       int64 `json:"shadow_blocks"`
		FlowControl        any   `json:"flow_control"`
		// Snapshots are ages such as "immediate" or "periodic 50ms", by signal.
		Snapshots map[string]string `json:"snapshots"`
	} `json:"control_plane"`

	config any // all of it, as decoded JSON

	// replicas are numbered from 0 in the order of the file; names are such as main/0.
	numbers  map[replicaID]int32
	replicas []replicaID
	names    []string
	// deployed has the deployment of each replica, an empty one where it is not known. latest is the number that was
	// found last: candidates often come in this order.
	deployed []*deployment
	latest   int
	// byModel has the replicas that serve each model. A request that names no model gets
	// defaultModel, that of the first deployment.
	byModel      map[string][]int32
	defaultModel string
}

type deployment struct {
	ID       string `json:"id"`
	Model    string `json:"model"`
	GPU      string `json:"gpu"`
	Replicas int    `json:"replicas"`
	// MaxReplicas is 0 for a deployment that does not scale.
	MaxReplicas int64 `json:"max_replicas"`
	Engine      struct {
		BlockSize           int64   `json:"block_size"`
		MaxNumSeqs          int32   `json:"max_num_seqs"`
		MaxNumActiveSeqs    int32   `json:"max_num_active_seqs"` // 0: MaxNumSeqs
		MaxNumBatchedTokens int64   `json:"max_num_batched_tokens"`
		PrefillThreshold    int64   `json:"long_prefill_token_threshold"`
		Watermark           float64 `json:"watermark"`
		PrefixCaching       *bool   `json:"enable_prefix_caching"`
		EnforceEager        bool    `json:"enforce_eager"`
		DataParallel        int     `json:"data_parallel_size"`
		MergesRanks         bool    `json:"merge_data_parallel_ranks"`
		shards
	} `json:"engine"`
	Latency struct {
		Model   string    `json:"model"`
		AlphaUS []float64 `json:"alpha_us"`
		BetaUS  []float64 `json:"beta_us"`
		Kernels struct {
			// MaxCaptureSize is 0 where it is the default.
			MaxCaptureSize float64 `json:"max_cudagraph_capture_size"`
		} `json:"kernels"`
	} `json:"latency"`
	Computed struct {
		KVBlocks     int64 `json:"kv_blocks"`
		KVBlockBytes int64 `json:"kv_block_bytes"`
	} `json:"computed"`
	// Backpressure is nil where nothing is held back.
	Backpressure *struct {
		MaxWaiting int64 `json:"max_waiting"`
	} `json:"backpressure"`
	// Prefill is nil for a deployment whose replicas all compute prompts and decode.
	Prefill *struct {
		GPU      string `json:"gpu"`
		Replicas int    `json:"replicas"`
		Engine   struct {
			MaxNumBatchedTokens int64 `json:"max_num_batched_tokens"`
		} `json:"engine"`
	} `json:"prefill"`
	Transfer struct {
		OutGBPerS float64 `json:"out_gb_per_s"`
		InGBPerS  float64 `json:"in_gb_per_s"`
	} `json:"transfer"`
	KVTiers []struct {
		Shared bool `json:"shared"` // by all replicas, with its links
		Load   struct {
			LatencyUS float64 `json:"latency_us"`
			GBPerS    float64 `json:"gb_per_s"`
		} `json:"load"`
	} `json:"kv_tiers"`
}

// shards are how an engine shards and stores the model.
type shards struct {
	TensorParallel   int64  `json:"tensor_parallel_size"`
	PipelineParallel int64  `json:"pipeline_parallel_size"`
	Quantization     string `json:"quantization"`
	DType            string `json:"dtype"`
	KVCacheDType     string `json:"kv_cache_dtype"`
}

// hardware names what a deployment computes with: deployments of a model with the same name should be equally fast.
func (d *deployment) hardware() string {
	return fmt.Sprint(d.GPU, d.Engine.shards, d.Engine.EnforceEager, d.Latency.Model, d.Latency.BetaUS)
}

// snapshotAgeUS is the highest age of a signal of replicas, 0 for one that is always current.
func (t *topology) snapshotAgeUS(signal string) int64 {
	_, age, _ := strings.Cut(t.ControlPlane.Snapshots[signal], " ")
	d, _ := time.ParseDuration(age)
	return d.Microseconds()
}

// Disaggregates reports whether a deployment has a prefill pool.
func (a *Analyzer) Disaggregates() bool {
	return slices.ContainsFunc(a.topology.Deployments, func(d deployment) bool { return d.Prefill != nil })
}

// HasOnlyBackpressure reports whether there is backpressure but no flow control: requests that wait before they are
// routed then wait for room at the replicas behind a prefill pool.
func (a *Analyzer) HasOnlyBackpressure() bool {
	return a.topology.ControlPlane.FlowControl == nil &&
		slices.ContainsFunc(a.topology.Deployments, func(d deployment) bool { return d.Backpressure != nil })
}

// usableBlocks is the number of KV blocks that requests can hold, 0 if it is not known. One is the null block.
func (d *deployment) usableBlocks() int64 { return max(0, d.Computed.KVBlocks-1) }

// engines is the number of replicas at the beginning, where each data-parallel rank is one unless they are merged.
func (d *deployment) engines() int {
	if d.Engine.MergesRanks {
		return d.Replicas
	}
	return d.Replicas * max(1, d.Engine.DataParallel)
}

// scales reports whether the number of replicas changes.
func (d deployment) scales() bool { return d.MaxReplicas > 0 }

// slots is the number of batch slots, and slotLimit the setting that limits them.
func (d *deployment) slots() int64 {
	return int64(cmp.Or(d.Engine.MaxNumActiveSeqs, d.Engine.MaxNumSeqs))
}
func (d *deployment) slotLimit() string {
	if d.Engine.MaxNumActiveSeqs > 0 {
		return "max_num_active_seqs"
	}
	return "max_num_seqs"
}

// cacheTokens is the number of tokens that the KV cache holds.
func (d *deployment) cacheTokens() int64 { return d.usableBlocks() * d.Engine.BlockSize }

// outputVaries reports whether outputUS depends on that number.
func (d *deployment) outputVaries() bool { return len(d.Latency.AlphaUS) > 3 }

// outputUS is how long each token needs to the client where that number of requests runs, at most what fits.
func (d *deployment) outputUS(running float64) uint32 {
	alpha := d.Latency.AlphaUS
	if len(alpha) < 3 {
		return 0
	}
	us := alpha[2]
	if len(alpha) > 3 {
		us += float64(alpha[3] * running)
	}
	return uint32(max(0, min(us, math.MaxUint32)))
}

// fixedStepShare is the share of the longest prefill step that does not depend on its tokens, 0 where the
// step times are not linear.
func (d *deployment) fixedStepShare() float64 {
	if d.Latency.Model != "linear" || len(d.Latency.BetaUS) < 2 {
		return 0
	}
	fixed, tokens := d.Latency.BetaUS[0], float64(d.Latency.BetaUS[1]*float64(d.Engine.MaxNumBatchedTokens))
	return fixed / max(1, fixed+tokens)
}

type replicaID struct {
	deployment string
	index      stream.Index
}

func newTopology(h *stream.Header) topology {
	t := topology{numbers: map[replicaID]int32{}, byModel: map[string][]int32{}}
	if h.Run == nil {
		return t
	}
	// An error leaves the topology empty; it does not occur, as the reader has checked the header.
	if text, err := json.Marshal(h.Run.Config); err == nil {
		_ = json.Unmarshal(text, &t)
		_ = json.Unmarshal(text, &t.config)
	}
	for _, d := range t.Deployments {
		for i := range d.engines() {
			t.number(d.ID, stream.Index(i))
		}
	}
	if len(t.Deployments) > 0 {
		t.defaultModel = t.Deployments[0].Model
	}
	return t
}

// number returns the number of a replica, a new one if needed; missing if there is no index.
func (t *topology) number(deployment string, index stream.Index) int32 {
	if index.IsZero() {
		return missing
	}
	id := replicaID{deployment, index}
	if t.latest < len(t.replicas) { // replicas of a deployment are usually numbered in their order
		guess := t.latest + int(index-t.replicas[t.latest].index)
		if guess >= 0 && guess < len(t.replicas) && t.replicas[guess] == id {
			t.latest = guess
			return int32(guess)
		}
	}
	n, ok := t.numbers[id]
	if !ok {
		n = int32(len(t.replicas))
		t.numbers[id] = n
		t.replicas, t.deployed = append(t.replicas, id), append(t.deployed, t.deploymentNamed(deployment))
		t.names = append(t.names, fmt.Sprintf("%s/%d", deployment, index))
		if d := t.deploymentOf(n); d.ID != "" {
			t.byModel[d.Model] = append(t.byModel[d.Model], n)
		}
	}
	t.latest = int(n)
	return n
}

// candidates are the replicas that could serve a request for model; n is where it was sent.
func (t *topology) candidates(model string, n int32) []int32 {
	if model == "" {
		model = t.defaultModel
	}
	if all := t.byModel[model]; len(all) > 0 {
		return all
	}
	return []int32{n}
}

// deploymentOf is the deployment of replica n, an empty one if it is not known.
func (t *topology) deploymentOf(n int32) *deployment {
	if n == missing {
		return &noDeployment
	}
	return t.deployed[n]
}

// noDeployment is that of replicas without a configuration.
var noDeployment deployment

// deploymentNamed is the deployment with this id, an empty one if there is none.
func (t *topology) deploymentNamed(id string) *deployment {
	for i := range t.Deployments {
		if d := &t.Deployments[i]; d.ID == id {
			return d
		}
	}
	return &noDeployment
}

// blockSize is in tokens, 0 if it is not known.
func (t *topology) blockSize(n int32) int64 { return t.deploymentOf(n).Engine.BlockSize }

// policy is the type of the policy of a stage, "" if it is not known.
func (t *topology) policy(stage string) string { return t.Policies[stage].Type }

// stages are those of the control plane in the order in which a request meets them.
var stages = [...]string{"admission", "priority", "routing", "scheduler", "preemption", "autoscale"}

// Policies are the stages of the control plane with the types of their policies, in the order
// in which a request meets them, without the unknown ones.
func (a *Analyzer) Policies() (all [][2]string) {
	for _, stage := range stages {
		if policy := a.topology.policy(stage); policy != "" {
			all = append(all, [2]string{stage, policy})
		}
	}
	return all
}

// policyNames are the types of the policies of a component.
func (a *Analyzer) policyNames(c *Component) string {
	var names []string
	for _, stage := range c.stages {
		if policy := a.topology.policy(stage); policy != "" {
			names = append(names, policy)
		}
	}
	return strings.Join(names, " + ")
}
