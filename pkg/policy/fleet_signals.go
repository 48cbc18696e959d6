package policy

import "blis/pkg/expr"

// deploymentSignals are those of auto-scaling policies.
func deploymentSignals() []signal[Fleet] {
	type f = Fleet
	traffic := func(of func(*Traffic, int64) float64) func(*f) float64 {
		return func(t *f) float64 { return of(t.Traffic, t.NowUS) }
	}
	return []signal[f]{
		num("deployment.replicas", "Replicas that are not draining.", 0,
			func(t *f) float64 { return float64(t.Current()) }),
		num("deployment.ready", "Replicas that serve, which includes those that warm up.", 0,
			func(t *f) float64 { return float64(len(t.Replicas)) }),
		num("deployment.starting", "Replicas that are provisioned or load the model.", 0,
			func(t *f) float64 { return float64(t.Loading + t.Provisioning) }),
		num("deployment.draining", "Replicas that complete their requests before they go.", 0,
			func(t *f) float64 { return float64(t.Draining) }),
		num("deployment.queue_depth", "Requests that wait in the replicas' queues.", NeedQueueDepth,
			func(t *f) float64 { return t.sum(func(r *Replica) float64 { return float64(r.QueueDepth) }) }),
		num("deployment.pending", "Requests for the model that wait in flow control.", 0,
			func(t *f) float64 { return float64(t.Waiting) }),
		num("deployment.inflight", "Requests sent to the replicas that have not left; never stale.", 0,
			func(t *f) float64 { return t.sum(func(r *Replica) float64 { return float64(r.Inflight) }) }),
		num("deployment.kv_util", "Mean share of KV blocks in use, 0..1.", needKVUtil,
			func(t *f) float64 { return t.mean(func(r *Replica) float64 { return r.KVUtil }) }),
		num("deployment.utilization", "Mean share of batch slots in use, 0..1.", NeedRunning,
			func(t *f) float64 { return t.mean(slotsInUse) }),
		num("deployment.rate", "Requests offered for the model per second, over the last 60 s.", needTraffic,
			traffic((*Traffic).rate)),
		num("deployment.e2e_ms", "Mean E2E of the requests that completed in the last 60 s, 0 without any.",
			needTraffic, traffic((*Traffic).meanE2E)),
		num("deployment.ttft_p99_ms", "99th percentile of TTFT of the requests that ended in the last 60 s, 0 without "+
			"any.", needTraffic, traffic(func(t *Traffic, now int64) float64 { return t.ttft(0.99, now) })),
		num("deployment.since_scale_s", "Time since the number of replicas last changed.", 0,
			func(t *f) float64 { return float64(t.NowUS-t.ScaledUS) / 1e6 }),
		{expr.Field[f]{Name: attainmentSignal, Type: expr.Number, Doc: `Share of the requests of a class that met ` +
			`their targets among those that ended in the last 60 s, 1 without any; "" is all classes.`,
			ByKey: func(t *f, class string) float64 {
				share, _ := t.Traffic.attainment(class, t.NowUS, trafficUS)
				return share
			}}, needTraffic},
		{expr.Field[f]{Name: "deployment.load_history", Type: expr.Number, Doc: "Requests offered for the model per " +
			"second in each of the last 60 intervals between looks; [0] is the last one. 0 before the first.",
			ByIndex: func(t *f, i int) float64 { return t.Traffic.load(i) }}, needTraffic},
	}
}

// memberSignals are those of the rules that choose a deployment of a fleet. Rates, latencies and attainments are those
// of the model.
func memberSignals() []signal[Fleet] {
	return append(deploymentSignals(),
		num(priceSignal, "Price of a replica for an hour: that of a GPU times its GPUs.", 0,
			func(f *Fleet) float64 { return f.Price }),
		signal[Fleet]{Field: expr.Field[Fleet]{Name: idSignal, Doc: "The deployment.", Type: expr.Text,
			Text: func(f *Fleet) string { return f.ID }}})
}

const (
	attainmentSignal = "deployment.attainment"
	idSignal         = "deployment.id"
	priceSignal      = "deployment.price"
)

// slotsInUse is the share of a replica's batch slots in use.
func slotsInUse(r *Replica) float64 { return float64(r.Running) / float64(r.Stats.MaxSeqs) }
