package policy

// The saturation detectors of llm-d-router v0.10.0
// (pkg/epp/framework/plugins/flowcontrol/saturationdetector). In a profile they are filters; flow
// control stops dispatching when a detector's saturation is high.

// utilizationDetector is utilization-detector (utilization/detector.go). The saturation is the mean
// over the replicas of max(queue depth / its limit, KV usage / its limit), in which a replica counts
// 1 if what it reported is older than staleUS. The filter keeps the replicas that are below
// (1 + headroom) times the limits and not stale; if there are none, all.
type utilizationDetector struct {
	queue, kv, headroom float64
	staleUS             int64
}

func newUtilizationDetector(_ *builder, v values) any {
	return utilizationDetector{v.number("queueDepthThreshold"), v.number("kvCacheUtilThreshold"),
		v.number("headroom"), int64(v.number("metricsStalenessThreshold") * 1e6)}
}

func (utilizationDetector) Needs() Needs { return NeedQueueDepth | needKVUtil }

func (d utilizationDetector) isStale(v *View, r *Replica) bool {
	taken := min(r.Stats.TakenUS[FieldQueueDepth], r.Stats.TakenUS[FieldKVUtil])
	return v.NowUS-max(0, taken) > d.staleUS
}

func (d utilizationDetector) cloneFilter() llmdFilter { return d }
func (d utilizationDetector) filter(v *View, keep []bool) {
	for i := range v.Replicas {
		r := &v.Replicas[i]
		keep[i] = !d.isStale(v, r) && float64(r.QueueDepth) < d.queue*(1+d.headroom) &&
			r.KVUtil < d.kv*(1+d.headroom)
	}
	fallback(true).restore(keep)
}

// concurrencyDetector is concurrency-detector (concurrency/detector.go). The saturation is the
// replicas' requests in flight, relative to the limit for each; in the mode tokens, their tokens of
// prompts without a first token; in the mode hybrid the mean over the replicas of the larger of the
// two. The filter keeps the replicas that are below (1 + headroom) times the limits.
type concurrencyDetector struct {
	mode                       string
	requests, tokens, headroom float64
}

const (
	modeRequests = "requests"
	modeTokens   = "tokens"
	modeHybrid   = "hybrid"
)

func newConcurrencyDetector(_ *builder, v values) any {
	return concurrencyDetector{v.choice("concurrencyMode"), v.number("maxConcurrency"),
		v.number("maxTokenConcurrency"), v.number("headroom")}
}

func (d concurrencyDetector) Needs() Needs {
	if d.mode == modeRequests {
		return 0
	}
	return NeedPrefillTokens | NeedBlockIndex
}

func (d concurrencyDetector) cloneFilter() llmdFilter { return d }
func (d concurrencyDetector) filter(v *View, keep []bool) {
	requests, tokens := int64(d.requests*(1+d.headroom)), int64(d.tokens*(1+d.headroom))
	for i := range v.Replicas {
		r := &v.Replicas[i]
		keep[i] = (d.mode == modeTokens || int64(r.Inflight) < requests) &&
			(d.mode == modeRequests || r.Stats.PrefillTokens < tokens)
	}
}
