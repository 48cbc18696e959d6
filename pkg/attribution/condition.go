package attribution

import (
	"fmt"
	"slices"

	"blis/pkg/llmtext"
	"blis/pkg/registry"
)

// Component is a part of the system that decides something, or that conditions are about.
type Component struct {
	Name, Doc string
	// stages are those of the control plane that it consists of, none without a policy.
	stages []string
	// rule is the rule of the component that decided about a request, nil if there are no rules.
	rule func(*request) int32
}

var (
	routingComponent = &Component{Name: "routing", Doc: "to which replica a request goes",
		stages: []string{"routing"}, rule: func(r *request) int32 { return r.routing.rule }}
	admissionComponent = &Component{Name: "admission", Doc: "whether and when a request is admitted",
		stages: []string{"admission"}, rule: func(r *request) int32 { return r.admission.rule }}
	schedulingComponent = &Component{Name: "scheduling", Doc: "which request is served first: priorities, queue order",
		stages: []string{"priority", "scheduler"}}
	cacheComponent = &Component{Name: "cache", Doc: "prefix-cache retention and preemption",
		stages: []string{"preemption"}}
	engineComponent   = &Component{Name: "engine", Doc: "the capacity that replicas are configured for; no policy"}
	workloadComponent = &Component{Name: "workload", Doc: "the offered requests; no policy"}
)

// Components lists all components.
func Components() registry.Table[*Component] {
	var all registry.Table[*Component]
	for _, c := range []*Component{routingComponent, admissionComponent, schedulingComponent, cacheComponent,
		engineComponent, workloadComponent} {
		all = append(all, registry.Entry[*Component]{Name: c.Name, Doc: c.Doc, Value: c})
	}
	return all
}

// Condition is something that may be true of a losing decision or of its request. All that texts
// say about it is here: a new condition is one value of this type and a line in conditions.
type Condition struct {
	Name string
	// Doc says when exactly it holds.
	Doc       string
	Component *Component
	// Cause says what happened, by averages over the losing requests of the pattern.
	Cause func(*Pattern) string
	// Hint says what usually helps.
	Hint string

	rank rank
	// parts are where a loss must be for the condition to explain it; see verdict.dominant.
	parts partSet
	// holds reports whether the condition holds for a request, and for which value: the number
	// of a name or of a replica, 0 where the condition has no value.
	holds func(*Analyzer, *request) (value int32, ok bool)
	// valueName is the name of a value, nil where the condition has none.
	valueName func(a *Analyzer, value int32) string
}

// rank is the order in which conditions are tried: first whether replicas are too small for most
// of the loss, then what went wrong (there the first rank may hold for less), then whether there
// was too much load everywhere, at last what kind of request it was.
type rank int

const (
	rankCapacity rank = iota
	rankMechanism
	rankOverload
	rankTrait
	rankCount
)

// conditions are all that are tried; the earlier one wins a tie.
var conditions = []*Condition{
	&unservable, &cacheFull, &batchSlotsFull,
	&staleSignal, &hotPrefix, &queueUnseen, &queueIgnored, &imbalancedBatch, &prefixUnseen, &prefixHitSkipped,
	&rejected, &delayed, &behindLowerClass, &behindTenant, &evicted, &preempted, &prefillInterference,
	&overload, &replicasSaturated,
	&hotReplica, &burst, &longPrompt, &tenantTrait, &classTrait,
}

// Conditions lists all conditions.
func Conditions() []*Condition { return slices.Clone(conditions) }

// Where a loss may be for a condition to explain it.
var (
	anyPart       = ^partSet(0)
	afterAdmitted = ^setOf(PartAdmission, PartLimits)
	inQueue       = setOf(PartQueue, PartPreempted)
	inDecode      = setOf(PartDecode, PartPreempted)
	inAdmission   = setOf(PartAdmission)
)

// covers reports whether the loss of r, if it has one, is in one of the parts.
func (set partSet) covers(r *request) bool { return !r.lost() || set.has(r.verdict.dominant) }

// matches reports whether c holds for r and may explain its loss, if it has one, and for which
// value.
func (c *Condition) matches(a *Analyzer, r *request) (value int32, ok bool) {
	if !c.parts.covers(r) {
		return 0, false
	}
	return c.holds(a, r)
}

// value is the name of a value, "" where the condition has none.
func (c *Condition) value(a *Analyzer, value int32) string {
	if c.valueName == nil {
		return ""
	}
	return c.valueName(a, value)
}

// when makes Condition.holds of a predicate of the request alone.
func when(holds func(*request) bool) func(*Analyzer, *request) (int32, bool) {
	return func(_ *Analyzer, r *request) (int32, bool) { return 0, holds(r) }
}

// nameOf is the valueName of conditions whose value is a name.
func nameOf(a *Analyzer, value int32) string { return a.names.list[value] }

// always makes Condition.Cause of a fixed text.
func always(text string) func(*Pattern) string {
	return func(*Pattern) string { return text }
}

// number formats a mean.
func number(x float64) string { return llmtext.Number(x) }

// sentTo describes a pattern of requests sent to a much longer queue than the shortest.
func sentTo(p *Pattern) string {
	q := &p.Averages.Queue
	return fmt.Sprintf("sent to a queue of %s (shortest %s)", number(q.Own), number(q.Shortest))
}

// waitedBehind describes a pattern of requests that waited behind tokens from a source.
func waitedBehind(p *Pattern, tokens float64, source string) string {
	m := &p.Averages
	return fmt.Sprintf("waited behind %s tokens, %s from %s; shortest queue %s (means)", number(m.Ahead.Total),
		number(tokens), source, number(m.Queue.Shortest))
}
