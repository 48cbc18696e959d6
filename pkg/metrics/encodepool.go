package metrics

import "blis/pkg/stream"

// EncodePool reports encode replicas, all together. Items with Tokens were encoded, and CacheHits were in their caches.
// Utilization is the share of time in which they encoded. Wait is the time of an item in their queues, and Encode that
// of a request from routing until its last item was encoded. The embeddings of Transfers items moved to replicas.
type EncodePool struct {
	Replicas         int64         `json:"replicas"`
	Items            int64         `json:"items"`
	Tokens           int64         `json:"tokens"`
	CacheHits        int64         `json:"cache_hits"`
	Utilization      *float64      `json:"utilization,omitempty"`
	PeakQueue        int64         `json:"peak_queue"`
	Wait             *Distribution `json:"wait,omitempty"`
	Encode           *Distribution `json:"encode,omitempty"`
	Transfers        int64         `json:"transfers"`
	TransferredBytes int64         `json:"transferred_bytes"`
	Transfer         *Distribution `json:"transfer,omitempty"`
}

// EncoderTotals are the totals of an encode replica of a deployment over its lifetime. Times are µs.
type EncoderTotals struct {
	Deployment          string
	GPUs                int64
	Items, Tokens, Hits int64
	PeakQueue           int64
	UpUS, BusyUS        int64
	// PerGPUHour is the price of one of its GPUs; 0 is none.
	PerGPUHour float64
}

// gpuTime are the GPUs and the price of the replica, as those of other replicas.
func (t *EncoderTotals) gpuTime() *ReplicaTotals {
	return &ReplicaTotals{Deployment: t.Deployment, GPUs: t.GPUs, UpUS: t.UpUS, BusyUS: t.BusyUS,
		PerGPUHour: t.PerGPUHour}
}

// encodePool gathers EncodePool. Times are in µs.
type encodePool struct {
	replicas                 []EncoderTotals
	bytes                    int64
	waits, encode, transfers column
}

// AddEncoder adds the totals of an encode replica.
func (a *Accumulator) AddEncoder(t *EncoderTotals) {
	a.encoders.replicas = append(a.encoders.replicas, *t)
}

// AddEncoderWait counts an item that waited us µs in the queue of an encode replica.
func (a *Accumulator) AddEncoderWait(us int64) { a.spilled.add(&a.encoders.waits, uint64(us)) }

// AddEmbeddings counts a transfer of embeddings that took us µs.
func (a *Accumulator) AddEmbeddings(us, bytes int64) {
	a.spilled.add(&a.encoders.transfers, uint64(us))
	a.encoders.bytes += bytes
}

func (p *encodePool) add(o *stream.Outcome, spilled *spilled) {
	if !o.EncodedUS.IsZero() {
		spilled.add(&p.encode, uint64(o.EncodedUS-o.RoutedUS))
	}
}

// tree returns the report, nil without encode replicas.
func (p *encodePool) tree(spilled *spilled) *EncodePool {
	if len(p.replicas) == 0 {
		return nil
	}
	x := &EncodePool{Replicas: int64(len(p.replicas)), Transfers: p.transfers.n, TransferredBytes: p.bytes}
	var up, busy int64
	for i := range p.replicas {
		t := &p.replicas[i]
		x.Items, x.Tokens, x.CacheHits = x.Items+t.Items, x.Tokens+t.Tokens, x.CacheHits+t.Hits
		x.PeakQueue = max(x.PeakQueue, t.PeakQueue)
		up, busy = up+t.UpUS, busy+t.BusyUS
	}
	x.Utilization = ratio(busy, up)
	x.Wait, x.Encode = spilled.micros(&p.waits), spilled.micros(&p.encode)
	x.Transfer = spilled.micros(&p.transfers)
	return x
}
