// Package attribution finds where a run lost time and missed SLOs, and which decisions
// caused it.
//
// An Analyzer takes a run's records in their order and keeps about 170 bytes for each request, and 430 where
// patterns are looked for. After the last record Find reconstructs from the outcomes what routers could not
// know: the actual length of each queue at each decision, and the work of others that started while each
// request waited. It divides the loss
//
//   - by where the time went (Parts), missed against met requests, and
//   - by the conditions (Conditions) that losing decisions match.
//
// The loss (see Loss) is the fitness that is lost, if the fitness reads more than the share of requests
// that met their targets: each number loses what its term would gain if it were ideal, and this is divided
// between the requests that make the number, such as the tail of a percentile. Else it is the requests that
// missed a target of their SLO class. Where no request has targets, it is the estimated regret of routing
// decisions; where no regret was recorded, it is the late requests: TTFT above five times the median, or
// not completed.
//
// A condition becomes a Pattern if it holds for at least 5 % of the loss with a lift of at
// least 1.5 (see Support.Lift). Patterns are found one after another, each among the requests
// that earlier patterns do not explain, so that no loss is counted twice. A run that lost at
// most 1 % of its requests, or fewer than ten, has no patterns.
package attribution

import (
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Thresholds of patterns.
const (
	// MinLost requests, and more than MinLossShare of the judged ones, must have lost
	// something; else there are no patterns.
	MinLost      = 10
	MinLossShare = 0.01
	// MinSupport is the smallest share of the loss that a pattern explains, MinLift its
	// smallest lift.
	MinSupport = 0.05
	MinLift    = 1.5
	// minCapacitySupport is the share of the loss that too small replicas must explain to be
	// reported before anything else.
	minCapacitySupport = 0.5
	maxPatterns        = 5
	// clearlyMore is by what factor a later condition must explain more of the loss than an earlier one.
	clearlyMore = 1.1
)

// Analyzer collects a run's records and explains its losses.
type Analyzer struct {
	classes map[string]stream.SLOClass
	// nameTargets are those of the class with each name in names, if there is such a class; see knownTargets.
	nameTargets []stream.Targets
	topology    topology
	// queueWeight is that of queue-depth in the policy weighted, 0 in others.
	queueWeight float64
	// cacheDelayUS is the highest age of what replicas report about their caches.
	cacheDelayUS int64
	// queuesCurrent: replicas report their queues at once.
	queuesCurrent bool
	// blindRouter: see drawsBlindly. tiesFirst: of replicas with equal scores the router chooses the first;
	// keepsSessions: it sends a session where it was before.
	blindRouter, tiesFirst, keepsSessions bool
	draws                                 string // see drawing
	// prefixesUnweighted: the router shows prefixes in its decisions and does not count them.
	prefixesUnweighted bool
	names              nameTable
	labels             map[labels]*labels
	recentLabels       [64]*labels // some of those that were looked up, which is faster than labels
	texts              textStore   // what requests have packed
	packing            []byte      // the buffer of pack
	metrics            *metrics.Raw
	episodes           []stream.Anomaly
	query              *Query
	// wantsAll: see MeasureAll. measuresLost: only what requests that lost something need is measured, as those that
	// did not share their rows; see measure.
	wantsAll, measuresLost bool

	requests requestList
	pending  pendingRequests

	exact          map[string]*Exact // of re-simulated decisions, by id
	scalingRegrets []ScalingRegret
	// admissions counts the verdicts of admission.
	admissions map[string]int64
	stats      runStats
	sessions   sessionSums
	fleet      fleet
	// lossBySource divides the loss of requests where the loss is fitness.
	lossBySource map[*request][]sourceShare
	// timedOut are the requests of which the last attempt timed out and is repeated.
	timedOut map[string]bool
}

// New returns an Analyzer for the run with this header.
func New(h *stream.Header) *Analyzer {
	a := &Analyzer{classes: map[string]stream.SLOClass{}, names: newNameTable(), labels: map[labels]*labels{},
		timedOut: map[string]bool{}, lossBySource: map[*request][]sourceShare{}, pending: newPendingRequests(),
		exact: map[string]*Exact{}, admissions: map[string]int64{}, topology: newTopology(h)}
	config := &proposal{Analyzer: a}
	a.queueWeight = config.number("policies.routing.params." + queueScorer)
	a.prefixesUnweighted = a.topology.policy("routing") == "dynamo-kv" && config.config(overlapCredit) != nil &&
		config.number(overlapCredit) == 0
	a.cacheDelayUS = a.topology.snapshotAgeUS("cache")
	a.blindRouter, a.tiesFirst = config.drawsBlindly(), config.config(tieRule) == "first"
	a.draws = config.drawing()
	a.keepsSessions = a.topology.policy("routing") == "session-affinity"
	a.queuesCurrent = a.topology.ControlPlane.Snapshots["queue_depth"] == immediate
	for _, c := range stream.Classes {
		a.classes[c.Name] = c.Value
	}
	for _, c := range h.SLOClasses {
		a.classes[c.Name] = c
	}
	return a
}

// overlapCredit is what a cached block counts for the policy dynamo-kv.
const overlapCredit = "policies.routing.params.overlap_score_credit"

// Metrics takes the metrics of the run and keeps the pointer.
func (a *Analyzer) Metrics(m *metrics.Raw) { a.metrics = m }

// Anomaly takes an anomaly.
func (a *Analyzer) Anomaly(episode *stream.Anomaly) { a.episodes = append(a.episodes, *episode) }

// Empty reports whether there was no record of any request.
func (a *Analyzer) Empty() bool { return a.requests.len() == 0 }

// Replica formats a replica as main/0; a missing one is "".
func (a *Analyzer) Replica(n int32) string {
	if n == missing {
		return ""
	}
	return a.topology.names[n]
}

// missing is the number of a replica, tenant or rule that does not exist.
const missing int32 = -1

// never marks a time that did not come.
const never = stream.Never

// nameTable numbers tenants, classes, rules and reasons in order of appearance. The number of "" is 0.
type nameTable struct {
	numbers map[string]int32
	list    []string
	// recent are numbers of names that were looked up, which is faster than numbers.
	recent [64]int32
}

func newNameTable() nameTable { return nameTable{numbers: map[string]int32{"": 0}, list: []string{""}} }

func (n *nameTable) number(name string) int32 {
	if name == "" {
		return 0
	}
	recent := &n.recent[(len(name)+5*int(name[0])+int(name[len(name)-1]))%len(n.recent)]
	if n.list[*recent] == name {
		return *recent
	}
	i, ok := n.numbers[name]
	if !ok {
		i = int32(len(n.list))
		n.numbers[name] = i
		n.list = append(n.list, name)
	}
	*recent = i
	return i
}
