package llmd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// Read returns what is simulated of a configuration, and warnings about parts that have no effect. What would change
// decisions and is not simulated is an error, a *strictyaml.Error.
func Read(doc *strictyaml.Doc) (*Router, []string, error) {
	c := new(config)
	if err := doc.Decode(c); err != nil {
		return nil, nil, err
	}
	r := &reader{Doc: doc, config: c, known: policy.LLMDPlugins(), byName: map[string]int{}, used: map[string]bool{}}
	router, err := r.read()
	return router, r.warnings, err
}

type reader struct {
	*strictyaml.Doc
	*config
	known  map[string]policy.LLMDPlugin
	byName map[string]int // indexes of Plugins
	// used are the names of plugins that something refers to.
	used     map[string]bool
	warnings []string
}

func (r *reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

func (r *reader) read() (*Router, error) {
	if r.Kind != kind {
		return nil, r.Errorf("kind", "must be %s, or left out in a policy bundle, is %q", kind, r.Kind)
	}
	for i, p := range r.Plugins {
		if _, ok := r.known[p.Type]; !ok {
			return nil, r.Errorf(at(i)+".type", "llm-d-router v0.10.0 has no plugin %q", p.Type)
		}
		name := p.name()
		if _, twice := r.byName[name]; twice {
			return nil, r.Errorf(at(i), "two plugins have the name %q", name)
		}
		r.byName[name] = i
	}
	router := new(Router)
	var err error
	if router.Routing, err = r.profile(); err != nil {
		return nil, err
	}
	if router.Flow, err = r.flow(); err != nil {
		return nil, err
	}
	return router, r.others(router)
}

func at(i int) string { return fmt.Sprintf("plugins[%d]", i) }

func (p *plugin) name() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Type
}

// get returns the plugin that a value at path refers to.
func (r *reader) get(path, name string) (i int, err error) {
	i, ok := r.byName[name]
	if !ok {
		return 0, r.Errorf(path, "there is no plugin %q; have %s", name,
			strings.Join(slices.Sorted(maps.Keys(r.byName)), ", "))
	}
	r.used[name] = true
	return i, nil
}

// profile returns the one profile as a routing policy.
func (r *reader) profile() (s policy.Spec, err error) {
	if len(r.SchedulingProfiles) != 1 {
		return s, r.Errorf("schedulingProfiles", "must have one profile, has %d: profiles for disaggregated prefill "+
			"and decode are not simulated", len(r.SchedulingProfiles))
	}
	s.Type = routingType
	for k, ref := range r.SchedulingProfiles[0].Plugins {
		path := fmt.Sprintf("schedulingProfiles[0].plugins[%d].pluginRef", k)
		i, err := r.get(path, ref.PluginRef)
		if err != nil {
			return s, err
		}
		of, err := r.ofProfile(i, ref.Weight)
		if err != nil {
			return s, err
		}
		if of != nil {
			s.Of = append(s.Of, *of)
		}
	}
	for i, p := range r.Plugins {
		if p.Type == prefixProducer {
			r.used[p.name()] = true
			of, err := r.ofProfile(i, nil)
			if err != nil {
				return s, err
			}
			s.Of = append(s.Of, *of)
		}
	}
	return s, nil
}

// ofProfile returns a plugin of a profile, nil if it has no effect.
func (r *reader) ofProfile(i int, weight *float64) (*policy.Spec, error) {
	p := r.Plugins[i]
	switch known := r.known[p.Type]; {
	case p.Type == decodeFilter:
		r.warn("decode-filter has no effect: replicas have no labels, and it keeps those without one")
		return nil, nil
	case known.Place == policy.NotSimulated:
		return nil, r.Errorf(at(i)+".type", "%s is not simulated: %s", p.Type, known.Note)
	case known.Place != policy.InProfile:
		return nil, r.Errorf(at(i)+".type", "%s is a %s, not a plugin of a profile", p.Type, known.Kind)
	}
	if ReadsAttributes(p.Type) {
		return nil, r.Errorf(at(i)+".type", "%s reads attributes of llm-d's data layer, which are not simulated; "+
			"here it reads signals of replicas", p.Type)
	}
	params, err := r.params(i)
	if err != nil {
		return nil, err
	}
	s := &policy.Spec{Type: p.Type, Params: params}
	if most, ok := s.Params[pickerMaximum]; ok {
		if n, err := strconv.ParseFloat(fmt.Sprint(most), 64); err != nil || n != 1 {
			return nil, r.Errorf(at(i)+".parameters."+pickerMaximum, "must be 1, is %v: a router picks one replica",
				most)
		}
		delete(s.Params, pickerMaximum)
	}
	if of, ok := s.Params[producerOfScorer]; ok {
		delete(s.Params, producerOfScorer)
		k, err := r.get(at(i)+".parameters."+producerOfScorer, fmt.Sprint(of))
		if err != nil {
			return nil, err
		}
		switch source := r.Plugins[k].Type; {
		case source == preciseProducer && p.Type == prefixScorer:
			s.Type = preciseScorer
		case source == prefixProducer:
		default:
			return nil, r.Errorf(at(i)+".parameters."+producerOfScorer, "%s is not simulated as the source of "+
				"prefixes of a %s", r.Plugins[k].Type, p.Type)
		}
	}
	if weight != nil {
		if s.Params == nil {
			s.Params = map[string]any{}
		}
		s.Params["weight"] = *weight
	}
	if len(s.Params) == 0 {
		s.Params = nil
	}
	one := policy.Spec{Type: s.Type, Params: maps.Clone(s.Params)}
	return s, r.check(i, policy.Bundle{Routing: policy.Spec{Type: routingType, Of: []policy.Spec{one}}})
}

// check builds a bundle whose only parameters are those of plugin i.
func (r *reader) check(i int, b policy.Bundle) error {
	b.Complete()
	one := policy.Env{Seed: func(string) uint64 { return 0 }, Models: []string{""}, Replicas: 1, Candidates: 1}
	_, err := policy.Build(&b, one)
	if e, ok := errors.AsType[*policy.Error](err); ok {
		_, param, _ := strings.Cut(e.Path, ".params")
		return r.Errorf(at(i)+".parameters"+param, "%s", e.Msg)
	}
	return err
}

// params returns the parameters of plugin i as a policy bundle has them.
func (r *reader) params(i int) (map[string]any, error) {
	all, name, err := fromLLMD(r.Plugins[i].Type, r.Plugins[i].Parameters)
	if err != nil {
		return nil, r.Errorf(at(i)+".parameters."+name, "%v", err)
	}
	return all, nil
}

// ignored are the kinds of plugins that change no decision, or none without a plugin that reads them.
var ignored = []string{"parser", "data layer", "reporter", "test", "producer"}

// others handles the plugins that nothing refers to.
func (r *reader) others(router *Router) error {
	for i := range r.Plugins {
		p := &r.Plugins[i]
		known := r.known[p.Type]
		switch {
		case r.used[p.name()] || known.Place == policy.Implied || slices.Contains(ignored, known.Kind):
		case known.Place == policy.NotSimulated && known.Kind != "filter" && known.Kind != "scorer":
			return r.Errorf(at(i)+".type", "%s is not simulated: %s", p.Type, known.Note)
		case known.Place == policy.InAdmission && router.Admission != nil:
			return r.Errorf(at(i)+".type", "a second admission plugin is not simulated")
		case known.Place == policy.InAdmission:
			router.Admission = &policy.Spec{Type: p.Type, Params: p.Parameters}
			one := policy.Spec{Type: p.Type, Params: maps.Clone(p.Parameters)}
			if err := r.check(i, policy.Bundle{Admission: one}); err != nil {
				return err
			}
		default:
			r.warn("%s has no effect: nothing refers to it", p.name())
		}
	}
	return nil
}

// flow returns the flow control, nil if it is off.
func (r *reader) flow() (*Flow, error) {
	on := slices.Contains(r.FeatureGates, flowControlGate) || slices.Contains(r.FeatureGates, flowControlGate+"=true")
	in := r.FlowControl
	if in == nil {
		in = new(flow)
	}
	f := &Flow{Order: defaultOrder, Fairness: defaultFairness, TTLUS: defaultTTLUS}
	var err error
	if f.Detector, err = r.detector(in); err != nil {
		return nil, err
	}
	if ref := in.UsageLimitPolicyPluginRef; ref != "" {
		i, err := r.get("flowControl.usageLimitPolicyPluginRef", ref)
		if err != nil {
			return nil, err
		}
		f.UsageLimit = &policy.Spec{Type: r.Plugins[i].Type, Params: r.Plugins[i].Parameters}
		if err := r.checkGate(i, policy.GateConfig{UsageLimit: f.UsageLimit}); err != nil {
			return nil, err
		}
	}
	if !on {
		if r.FlowControl != nil {
			r.warn("flowControl has no effect without the feature gate %s, as in llm-d", flowControlGate)
		}
		return nil, nil
	}
	if in.EnableEviction {
		return nil, r.Errorf("flowControl.enableEviction", "is not simulated: a request that was sent is not taken "+
			"back")
	}
	if err := r.limits(in, f); err != nil {
		return nil, err
	}
	return f, r.bands(in, f)
}

func (r *reader) detector(in *flow) (policy.Spec, error) {
	path, ref := "flowControl.saturationDetector.pluginRef", in.SaturationDetector
	if ref == nil {
		path, ref = "saturationDetector.pluginRef", r.SaturationDetector
	}
	if ref == nil || ref.PluginRef == "" {
		return policy.Spec{Type: defaultDetector}, nil
	}
	i, err := r.get(path, ref.PluginRef)
	if err != nil {
		return policy.Spec{}, err
	}
	params, err := r.params(i)
	s := policy.Spec{Type: r.Plugins[i].Type, Params: params}
	if err != nil {
		return s, err
	}
	return s, r.checkGate(i, policy.GateConfig{Detector: &s})
}

// checkGate builds a gate whose only parameters are those of plugin i.
func (r *reader) checkGate(i int, c policy.GateConfig) error {
	_, _, err := policy.NewGate(c)
	if e, ok := errors.AsType[*policy.Error](err); ok {
		if _, param, ok := strings.Cut(e.Path, ".params"); ok {
			return r.Errorf(at(i)+".parameters"+param, "%s", e.Msg)
		}
		return r.Errorf(at(i)+".type", "%s", e.Msg)
	}
	return err
}

// limits reads the limits of all bands together.
func (r *reader) limits(in *flow, f *Flow) error {
	if in.DefaultRequestTTL != "" {
		ttl, err := time.ParseDuration(in.DefaultRequestTTL)
		if err != nil || ttl < 0 {
			return r.Errorf("flowControl.defaultRequestTTL", "must be a duration such as 60s, is %q",
				in.DefaultRequestTTL)
		}
		f.TTLUS = ttl.Microseconds()
	}
	if in.MaxRequests != "" {
		n, ok := quantity(in.MaxRequests)
		if !ok {
			return r.Errorf("flowControl.maxRequests", "must be a quantity such as 100 or 1k, is %q", in.MaxRequests)
		}
		f.Capacity = int(n)
	}
	if in.MaxBytes != "" {
		r.warn("flowControl.maxBytes has no effect: the bytes of requests are not simulated")
	}
	return nil
}

// bands reads the policies, which must be the same in all bands.
func (r *reader) bands(in *flow, f *Flow) error {
	type placed struct {
		path string
		band
	}
	var all []placed
	for path, b := range map[string]*band{"defaultPriorityBand": in.DefaultPriorityBand,
		"defaultNegativePriorityBand": in.DefaultNegativePriorityBand} {
		if b != nil {
			all = append(all, placed{"flowControl." + path, *b})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return strings.Compare(b.path, a.path) })
	for i, b := range in.PriorityBands {
		all = append(all, placed{fmt.Sprintf("flowControl.priorityBands[%d]", i), b})
	}
	for k, b := range all {
		order, err := r.policyOf(b.path+".orderingPolicyRef", b.OrderingPolicyRef, defaultOrder)
		if err != nil {
			return err
		}
		fairness, err := r.policyOf(b.path+".fairnessPolicyRef", b.FairnessPolicyRef, defaultFairness)
		if err != nil {
			return err
		}
		if k > 0 && (order != f.Order || fairness != f.Fairness) || k == 0 && in.DefaultPriorityBand == nil &&
			(order != defaultOrder || fairness != defaultFairness) {
			return r.Errorf(b.path, "all bands must have the same ordering and fairness policies, also "+
				"flowControl.defaultPriorityBand; others are not simulated")
		}
		f.Order, f.Fairness = order, fairness
		if n, ok := quantity(b.MaxRequests); b.MaxRequests != "" && (!ok || n < unlimited) {
			r.warn("%s.maxRequests has no effect: limits of single bands are not simulated", b.path)
		}
	}
	return nil
}

// policyOf returns the type of a policy of a band. Policies without parameters need no plugin.
func (r *reader) policyOf(path, ref, byDefault string) (string, error) {
	if ref == "" {
		return byDefault, nil
	}
	name := ref
	if i, ok := r.byName[ref]; ok {
		r.used[ref], name = true, r.Plugins[i].Type
	}
	switch known, ok := r.known[name]; {
	case !ok:
		return "", r.Errorf(path, "there is no plugin %q", ref)
	case known.Place != policy.InFlowControl:
		return "", r.Errorf(path, "%s is not simulated in a band: %s", name, known.Note)
	}
	return name, nil
}

// unlimited are more requests than any queue has.
const unlimited = 1e9

// quantity reads a quantity of Kubernetes.
func quantity(s string) (float64, bool) {
	factor := 1.0
	for suffix, by := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20,
		"Gi": 1 << 30, "Ti": 1 << 40} {
		if number, ok := strings.CutSuffix(s, suffix); ok {
			s, factor = number, by
			break
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	return x * factor, err == nil && x >= 0
}
