// Llmd-oracle writes random states of eight replicas, each with a random profile of plugins, and what
// the code of the gateway API inference extension, from which llm-d's router was made, makes of them:
// the replicas that its filters keep, the scores of its scorers, the choice of its picker, and the
// saturation of its detectors.
//
//	llmd-oracle STATES SEED
//
// Each line of the output is a state.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/datalayer"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/flowcontrol"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/plugin"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/scheduling"
	inflight "sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/datalayer/attribute/concurrency"
	attrprefix "sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/datalayer/attribute/prefix"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/flowcontrol/saturationdetector/concurrency"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/flowcontrol/saturationdetector/utilization"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/filter/prefixcacheaffinity"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/picker"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/kvcacheutilization"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/prefix"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/queuedepth"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/runningrequests"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/tokenload"
	eppscheduling "sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling"
)

const replicas = 8

// blockTokens is the size of the prompt's blocks in the states.
const blockTokens = 64

// State is a line of the output.
type State struct {
	Input    int64     `json:"input"`
	Blocks   int       `json:"blocks"`
	Replicas []Replica `json:"replicas"`
	Profile  []Plugin  `json:"profile"`
	// Kept are the replicas that pass the filters. Scores has those of each scorer for them, in the
	// order of the profile. Chosen is the picker's choice.
	Kept   []int       `json:"kept"`
	Scores [][]float64 `json:"scores"`
	Chosen int         `json:"chosen"`
	// Detectors are saturation detectors with their results.
	Detectors []Detector `json:"detectors"`
}

// Replica is what the router knows of a replica.
type Replica struct {
	Queue    int     `json:"queue"`
	Running  int     `json:"running"`
	KV       float64 `json:"kv"`
	Inflight int64   `json:"inflight"`
	Tokens   int64   `json:"tokens"` // of prompts without a first token
	Matched  int     `json:"matched"`
	Stale    bool    `json:"stale,omitempty"`
}

// Plugin is a plugin as in a policy bundle.
type Plugin struct {
	Type   string         `json:"type"`
	Params map[string]any `json:"params,omitempty"`
}

// Detector is a saturation detector and its result.
type Detector struct {
	Plugin
	Saturation float64 `json:"saturation"`
}

func main() {
	states, seed := 1000, 1
	for i, p := range []*int{&states, &seed} {
		if len(os.Args) > i+1 {
			n, err := strconv.Atoi(os.Args[i+1])
			check(err)
			*p = n
		}
	}
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	out := json.NewEncoder(os.Stdout)
	for range states {
		check(out.Encode(newState(r)))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "llmd-oracle:", err)
		os.Exit(1)
	}
}

// newState draws a state and completes it with the results.
func newState(r *rand.Rand) *State {
	s := &State{Input: int64(1 + r.IntN(4000))}
	s.Blocks = int((s.Input + blockTokens - 1) / blockTokens)
	busy := 1 + r.IntN(12) // low limits give equal values
	for range replicas {
		x := Replica{Queue: r.IntN(busy) * r.IntN(2), Running: r.IntN(busy),
			KV: float64(r.IntN(busy*8)) / float64(busy*8), Inflight: int64(r.IntN(busy * 10)),
			Tokens: int64(r.IntN(busy * 5000)), Stale: r.IntN(20) == 0}
		if r.IntN(2) == 0 {
			x.Matched = r.IntN(s.Blocks + 1)
		}
		s.Replicas = append(s.Replicas, x)
	}
	s.run(r)
	return s
}

// run draws a profile and runs it.
func (s *State) run(r *rand.Rand) {
	ctx := context.Background()
	handle := plugin.NewEppHandle(ctx, func() []types.NamespacedName { return nil })
	all := s.endpoints(true)
	kept := all
	var filters []scheduling.Filter
	for _, p := range drawFilters(r) {
		f := p.filter(handle)
		before := kept
		if kept = f.Filter(ctx, nil, nil, kept); len(kept) == 0 { // the router would answer with an error
			kept = before
			continue
		}
		filters = append(filters, f)
		s.Profile = append(s.Profile, p)
	}
	for _, e := range kept {
		s.Kept = append(s.Kept, index(e))
	}
	var weighted []*eppscheduling.WeightedScorer
	for _, p := range drawScorers(r) {
		scorer := p.scorer(handle)
		given := scorer.Score(ctx, nil, nil, kept)
		var scores []float64
		for _, e := range kept {
			scores = append(scores, given[e])
		}
		s.Scores = append(s.Scores, scores)
		weighted = append(weighted, eppscheduling.NewWeightedScorer(scorer, p.Params["weight"].(float64)))
		s.Profile = append(s.Profile, p)
	}
	profile := eppscheduling.NewSchedulerProfile().WithFilters(filters...).WithScorers(weighted...).
		WithPicker(picker.NewMaxScorePicker(1))
	result, err := profile.Run(ctx, &scheduling.LLMRequest{}, scheduling.NewCycleState(), all)
	check(err)
	s.Chosen = index(result.TargetEndpoints[0])
	s.detect(r, handle)
}

// endpoints returns the replicas as the router has them. The scorer of tokens counts those of the
// prompt too, as llm-d's does.
func (s *State) endpoints(withPrompt bool) (all []scheduling.Endpoint) {
	for i := range s.Replicas {
		x := &s.Replicas[i]
		taken := time.Now()
		if x.Stale {
			taken = taken.Add(-time.Hour)
		}
		e := scheduling.NewEndpoint(
			&datalayer.EndpointMetadata{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}},
			&datalayer.Metrics{WaitingQueueSize: x.Queue, RunningRequestsSize: x.Running, KVCacheUsagePercent: x.KV,
				UpdateTime: taken}, nil)
		tokens := x.Tokens
		if withPrompt {
			tokens += int64(s.Blocks-x.Matched) * blockTokens
		}
		e.Put(inflight.InFlightLoadKey, &inflight.InFlightLoad{Requests: x.Inflight, Tokens: tokens})
		e.Put(attrprefix.PrefixCacheMatchInfoKey, attrprefix.NewPrefixCacheMatchInfo(x.Matched, s.Blocks, blockTokens))
		all = append(all, e)
	}
	return all
}

func index(e scheduling.Endpoint) int {
	i, err := strconv.Atoi(e.GetMetadata().NamespacedName.Name)
	check(err)
	return i
}

// build makes a plugin with its parameters, except the weight, which is the profile's.
func (p *Plugin) build(handle plugin.Handle) plugin.Plugin {
	params := map[string]any{}
	for name, value := range p.Params {
		if name != "weight" {
			params[name] = value
		}
	}
	if p.Type == "prefix-cache-affinity-filter" {
		params["explorationProbability"] = 0.0 // the default is another one
	}
	text, err := json.Marshal(params)
	check(err)
	factories := map[string]plugin.FactoryFunc{
		"queue-scorer":                 queuedepth.QueueScorerFactory,
		"kv-cache-utilization-scorer":  kvcacheutilization.KvCacheUtilizationScorerFactory,
		"prefix-cache-scorer":          prefix.PrefixCachePluginFactory,
		"running-requests-size-scorer": runningrequests.RunningRequestsSizeScorerFactory,
		"token-load-scorer":            tokenload.TokenLoadScorerFactory,
		"prefix-cache-affinity-filter": prefixcacheaffinity.Factory,
		"utilization-detector":         utilization.UtilizationDetectorFactory,
		"concurrency-detector":         concurrency.ConcurrencyDetectorFactory,
	}
	made, err := factories[p.Type](p.Type, text, handle)
	check(err)
	return made
}

func (p *Plugin) scorer(handle plugin.Handle) scheduling.Scorer {
	return p.build(handle).(scheduling.Scorer)
}
func (p *Plugin) filter(handle plugin.Handle) scheduling.Filter {
	return p.build(handle).(scheduling.Filter)
}

// detect draws detectors and asks them for the saturation.
func (s *State) detect(r *rand.Rand, handle plugin.Handle) {
	modes := []string{"requests", "tokens"}
	for _, p := range []Plugin{{"utilization-detector", nil}, drawUtilization(r), {"concurrency-detector", nil},
		{"concurrency-detector", map[string]any{"concurrencyMode": modes[r.IntN(2)], "maxConcurrency": 1 + r.IntN(100),
			"maxTokenConcurrency": 1 + r.IntN(20000)}}} {
		var pool []datalayer.Endpoint
		for _, e := range s.endpoints(false) {
			m := datalayer.NewEndpoint(e.GetMetadata(), e.GetMetrics())
			for _, key := range e.Keys() {
				value, _ := e.Get(key)
				m.GetAttributes().Put(key, value)
			}
			pool = append(pool, m)
		}
		d := p.build(handle).(flowcontrol.SaturationDetector)
		s.Detectors = append(s.Detectors, Detector{p, d.Saturation(context.Background(), pool)})
	}
}
