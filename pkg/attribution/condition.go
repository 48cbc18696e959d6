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
	// rule returns the rule of the component that decided about a request; nil if it has no rules.
	rule func(*request) int32
}

var (
	routingComponent = &Component{Name: "routing", Doc: "to which replica a request goes",
		stages: []string{"routing"}, rule: func(r *request) int32 { return r.labels.rule }}
	admissionComponent = &Component{Name: "admission", Doc: "whether and when a request is admitted",
		stages: []string{"admission"}, rule: func(r *request) int32 { return r.admission.rule }}
	schedulingComponent = &Component{Name: "scheduling", Doc: "which request is served first: priorities, queue order",
		stages: []string{"priority", "scheduler"}}
	cacheComponent = &Component{Name: "cache", Doc: "prefix-cache retention and preemption",
		stages: []string{"preemption"}}
	scalingComponent = &Component{Name: "autoscaling", Doc: "how many replicas a deployment has",
		stages: []string{"autoscale"}}
	engineComponent   = &Component{Name: "engine", Doc: "the capacity that replicas are configured for; no policy"}
	workloadComponent = &Component{Name: "workload", Doc: "the offered requests; no policy"}
)

// Components lists all components.
func Components() registry.Table[*Component] {
	var all registry.Table[*Component]
	for _, c := range []*Component{routingComponent, admissionComponent, schedulingComponent, cacheComponent,
		scalingComponent, engineComponent, workloadComponent} {
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
	// Hint says what usually helps, change proposes it as settings; nil where settings cannot say it. others may
	// help too.
	Hint   string
	change propose
	others []remedy

	// cause says what happened; see Pattern.Cause.
	cause func(*Pattern) string
	rank  rank
	// isAbsolute: it says where at least half of the wait was, whatever other requests lost; see Analyzer.bestPattern.
	isAbsolute bool
	// isWrong: what it says is an error whatever else is too small; it comes first if it explains half as much.
	isWrong bool
	// parts are where a loss must be for the condition to explain it; see verdict.dominant.
	parts partSet
	holds func(*Analyzer, *request) bool
	// took is the time that what it says took; nil where that is not known. See Support.MetWithout.
	took func(*Analyzer, *request) taken
	// value is the tenant, class or replica that it holds for, as a number, and valueName its name;
	// nil where the condition has none.
	value     func(*Analyzer, *request) int32
	valueName func(a *Analyzer, value int32) string
}

// rank is the order in which conditions are tried: first whether replicas are too small for most
// of the loss, then what went wrong (conditions of the first rank are tried again there, with a
// smaller share of the loss), then whether there was too much load everywhere, and last what kind
// of request it was.
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
	&unservable, &serverLimit, &grammarCompiled, &adaptersFull, &encoderFull, &frontEnd,
	&controlLatency, &flowControl, &replicaLost, &scaledIn,
	&coldStart, &retryLoad, &deadlineTooShort, &horizonReached, &prefillPoolIdle, &prefillPoolFull, &slowHandoff,
	&leaseTooShort,
	&slowTransfer, &decodePoolFull, &slowTier,
	&warmingReplica, &scaledInEarly, &scaledLate, &slowReplica, &eagerSteps, &targetOutOfReach,
	&decodeTime, &slowPrefill,
	&cacheFull, &tokenBudgetFull, &smallChunks, &behindLongPrompts, &overtaken, &behindTenant, &behindLowerClass,
	&batchSlotsFull,
	&randomChoice, &staleSignal, &hotPrefix, &poolTooSmall, &queueUnseen, &queueIgnored,
	&imbalancedBatch, &prefillImbalance, &prefixUnseen,
	&prefixHitSkipped,
	&rejected, &delayed, &stalePrefixes, &prefixForgotten,
	&evicted, &tierTooSmall, &preempted, &prefixCachingOff, &blocksTooLarge, &prefillInterference,
	&scaleLimit, &loadPeak, &overload, &promptsSaturate, &replicasSaturated,
	&hotReplica, &burst, &longPrompt, &tenantTrait, &classTrait,
}

// Conditions lists all conditions.
func Conditions() []*Condition { return slices.Clone(conditions) }

// Where a loss may be for a condition to explain it.
var (
	anyPart       = ^partSet(0)
	afterAdmitted = ^setOf(PartAdmission, PartLimits)
	inQueue       = setOf(PartQueue, PartPreempted)
	beforeToken   = setOf(PartFrontend, PartQueue, PartPrefill, PartPreempted)
	inDecode      = setOf(PartDecode, PartPreempted)
	inAdmission   = setOf(PartAdmission)
)

// covers reports whether the loss of r, if it has one, is in one of the parts.
func (set partSet) covers(r *request) bool { return !r.lost() || set.has(r.verdict.dominant) }

// conditionSet is a set of indices of conditions: bit i%64 of word i/64 is set if i is in it.
type conditionSet [2]uint64

func (x *conditionSet) add(i int) { x[i/64] |= 1 << (i % 64) }

func (x *conditionSet) has(i int) bool { return x[i/64]>>(i%64)&1 != 0 }

// matchConditions sets the conditions of each judged request: those that hold and may explain its
// loss, if it has one.
func (a *Analyzer) matchConditions() {
	a.withRouting(func(r *request) {
		for i, c := range conditions {
			if r.verdict.judged && c.parts.covers(r) && c.holds(a, r) {
				r.verdict.conditions.add(i)
				if c.took != nil && a.metWithout(r, c.took(a, r)) {
					r.verdict.metWithout.add(i)
				}
			}
		}
	})
}

// taken is a time in µs before the first token and after it.
type taken struct{ before, decode float64 }

// metWithout reports whether r lost, and would have met its targets if it had taken so much less time.
func (a *Analyzer) metWithout(r *request, t taken) bool {
	missed, target := r.verdict.missed, a.targets(r)
	if !r.lost() || missed == 0 || missed&missedCompletion != 0 {
		return false
	}
	ttft, decode := float64(1000*ttftMS(r)), float64(r.ended()-r.firstToken())
	late := missed&missedTTFT != 0 && ttft-t.before > float64(1000*target.TTFTMS)
	slow := missed&missedTPOT != 0 && decode-t.decode > float64(1000*target.TPOTMS*float64(r.tokens.output-1))
	long := missed&missedE2E != 0 && ttft+decode-t.before-t.decode > float64(1000*target.E2EMS)
	return !late && !slow && !long
}

// inPart is a taken that is all of a part before the first token.
func inPart(p Part) func(*Analyzer, *request) taken {
	return func(_ *Analyzer, r *request) taken { return taken{before: float64(r.split()[p])} }
}

// recomputing is the time that recomputed prompt tokens took: its own, those ahead of it, and those while it decoded.
func (a *Analyzer) recomputing(r *request) taken {
	if r.replica == missing {
		return taken{}
	}
	us, c := a.stats.steps[a.topology.deploymentOf(r.replica).ID].token, &r.contention
	return taken{float64(us * float64(c.recomputed+c.ahead.recomputed)), float64(us * float64(c.interferingRecomputed))}
}

// when makes Condition.holds of a predicate of the request alone.
func when(holds func(*request) bool) func(*Analyzer, *request) bool {
	return func(_ *Analyzer, r *request) bool { return holds(r) }
}

// nameOf is the valueName of conditions whose value is a name.
func nameOf(a *Analyzer, value int32) string { return a.names.list[value] }

// always makes Condition.cause of a fixed text.
func always(text string) func(*Pattern) string {
	return func(*Pattern) string { return text }
}

// mean is the mean of a quantity over requests.
func mean(all []*request, of func(*request) float64) float64 {
	sum := 0.0
	for _, r := range all {
		sum += of(r)
	}
	return sum / float64(len(all))
}

// mean formats the mean over the losing requests of the pattern.
func (p *Pattern) mean(of func(*request) float64) string { return llmtext.Number(mean(p.losing, of)) }

// shortestQueueText is the mean of the shortest queues, "" where they are not known.
func (p *Pattern) shortestQueueText() string {
	isUnknown := func(r *request) bool { return r.contention.shortest < 0 }
	known := slices.DeleteFunc(slices.Clone(p.losing), isUnknown)
	if len(known) == 0 {
		return ""
	}
	return "; the shortest queue held " + llmtext.Number(mean(known, shortestQueue)) + " requests"
}

// Quantities of which causes name the mean.

func signalAgeMS(r *request) float64        { return float64(r.seen().chosen.AgeUS) / 1000 }
func queueShown(r *request) float64         { return float64(r.seen().chosen.Queue) }
func ownQueue(r *request) float64           { return float64(r.contention.queue) }
func underway(r *request) float64           { return float64(r.contention.underway) }
func shortestQueue(r *request) float64      { return float64(r.contention.shortest) }
func resident(r *request) float64           { return float64(r.contention.resident) }
func fewestResident(r *request) float64     { return float64(r.contention.fewestResident) }
func running(r *request) float64            { return r.contention.running }
func kvShare(r *request) float64            { return r.contention.kvShare }
func allAhead(r *request) float64           { return float64(r.contention.ahead.total) }
func lowerPriorityAhead(r *request) float64 { return float64(r.contention.ahead.lowerPriority) }
func heavyTenantAhead(r *request) float64   { return float64(r.contention.ahead.heavyTenant) }
func recomputedAhead(r *request) float64    { return float64(r.contention.ahead.recomputed) }
func recomputedTokens(r *request) float64   { return float64(r.contention.recomputed) }
func interferingTokens(r *request) float64  { return float64(r.contention.interfering) }
func inputTokens(r *request) float64        { return float64(r.tokens.input) }
func expectedTokens(r *request) float64     { return float64(r.tokens.expected) }
func cachedTokens(r *request) float64       { return float64(r.tokens.cached) }
func outputTokens(r *request) float64       { return float64(r.tokens.output) }
func delays(r *request) float64             { return float64(r.delays) }
func admissionMS(r *request) float64        { return float64(r.split()[PartAdmission]) / 1000 }
func preemptions(r *request) float64        { return float64(r.preemptions) }
func preemptedMS(r *request) float64        { return float64(r.preemptedUS) / 1000 }

// sentTo describes a pattern of requests sent to a much longer queue than the shortest.
func sentTo(p *Pattern) string {
	return fmt.Sprintf("sent to a queue of %s requests, shortest %s", p.mean(ownQueue), p.mean(shortestQueue))
}

// startedMeanwhile describes a pattern of requests during whose wait tokens from a source started.
func startedMeanwhile(p *Pattern, tokens func(*request) float64, source string) string {
	return fmt.Sprintf("%s, %s from %s; shortest queue %s (means)", meanwhile(p), p.mean(tokens), source,
		p.mean(shortestQueue))
}

// recomputedMeanwhile says how many tokens of others started during the wait, and how many had been computed before.
func recomputedMeanwhile(p *Pattern) string {
	return meanwhile(p) + ", " + p.mean(recomputedAhead) + " recomputed"
}

// meanwhile says how many tokens of others started during the wait for the first token.
func meanwhile(p *Pattern) string {
	return "waited while " + p.mean(allAhead) + " tokens started"
}
