package sim

import (
	"math"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/latency"
	"blis/pkg/link"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Encode replicas encode the images and other media of requests for the replicas of a deployment. A request that was
// routed waits until all its items are encoded, each at one of them, and then enters the queue of its replica, which
// asks for the embeddings that it lacks (pkg/engine/embeddings.go).

// encoding is the state of all encode replicas and of the links from them.
type encoding struct {
	pools     []encodePool
	replicas  []encodeReplica // of all pools
	transfers []embeddingTransfer
	spare     []int32 // slots of transfers
	count     int64   // transfers so far
}

// encodePool are the encode replicas of a deployment, encoding.replicas[first:end].
type encodePool struct {
	deployment, first, end int
	gpus                   int
	roundRobin             bool
	turn                   int // of the next item
	bytesPerToken          int64
	link                   poolLink
}

// encodeReplica is one of them. starts: a batch starts at this instant, if anything waits.
type encodeReplica struct {
	engine *engine.EncodeReplica
	pool   int
	starts bool
}

// embeddingTransfer is a transfer of the embeddings of an item, of which the first request to ask for them has the id.
type embeddingTransfer struct {
	engine.Embedding
	number        int64
	from, replica int32 // encode replica and replica
	request       string
	asked, ended  des.Time
}

// encodedItems is where the items of a request are encoded. pending are those that are not yet.
type encodedItems struct {
	pending int
	at      []encodedAt
}

type encodedAt struct {
	content uint64
	replica int32
}

// addEncoders adds the encode replicas of the deployments that have them.
func (s *simulation) addEncoders(c *cluster.Config) {
	for i := range c.Deployments {
		d := &c.Deployments[i]
		p := d.Encode
		if p == nil {
			continue
		}
		if s.encoding == nil {
			s.encoding = &encoding{}
		}
		x := s.encoding
		pool := encodePool{deployment: i, first: len(x.replicas), gpus: p.GPUs,
			roundRobin:    p.Routing == cluster.EncodeRoundRobin,
			bytesPerToken: d.Computed.EmbeddingBytes,
			link: poolLink{next: math.MaxInt64, fair: link.NewFair(p.Transfer.LatencyUS, p.Transfer.OutGBPerS,
				p.Transfer.InGBPerS, p.Replicas, len(s.replicas))}}
		for range p.Replicas {
			x.replicas = append(x.replicas, encodeReplica{pool: len(x.pools), engine: engine.NewEncodeReplica(
				&engine.Encoder{Budget: int64(p.MaxNumInputTokens), CacheTokens: int64(p.CacheSize),
					Cost: latency.LinearEncoder{ItemUS: *p.ItemUS, TokenUS: *p.TokenUS}}, p.MaxNumSeqs)})
		}
		pool.end = len(x.replicas)
		s.deployments[i].encoders = len(x.pools)
		if p := s.deployments[i].pool; p != nil {
			s.deployments[p.prefill].encoders = len(x.pools)
		}
		x.pools = append(x.pools, pool)
	}
}

// noEncoders is deployment.encoders without encode replicas.
const noEncoders = -1

// leave sends a request that was routed to a replica of d on its way to the queue there, by encode replicas if these
// encode items of it.
func (s *simulation) leave(slot int32, d *deployment) error {
	if d.encoders != noEncoders && s.encodes(slot, d) {
		return nil
	}
	return s.schedule(d.model.Queueing(s.request(slot).out.InputTokens), enqueue, slot)
}

// encodes sends the items of a request that was routed to a replica of d to encode replicas, and reports whether there
// are any. Items of the same content are encoded once.
func (s *simulation) encodes(slot int32, d *deployment) bool {
	r, pool := s.request(slot), &s.encoding.pools[d.encoders]
	if len(r.items) == 0 {
		return false
	}
	u := &encodedItems{}
	for i, item := range r.items {
		if slices.IndexFunc(r.items, func(x engine.Item) bool { return x.Content == item.Content }) < i {
			continue
		}
		at := s.encoding.choose(pool)
		s.encoding.replicas[at].engine.Add(engine.EncodeTask{Tag: slot, Since: s.now, Item: item})
		u.at = append(u.at, encodedAt{item.Content, at})
		u.pending++
		s.startEncoder(at)
	}
	r.encoded = u
	return true
}

// choose chooses the replica of a pool for the next item.
func (x *encoding) choose(p *encodePool) int32 {
	if p.roundRobin {
		at := p.first + p.turn
		p.turn = (p.turn + 1) % (p.end - p.first)
		return int32(at)
	}
	best := p.first
	for i := p.first + 1; i < p.end; i++ {
		if x.replicas[i].engine.Load() < x.replicas[best].engine.Load() {
			best = i
		}
	}
	return int32(best)
}

// startEncoder makes an encode replica start with a batch when all other events of this instant are done, unless it is
// busy.
func (s *simulation) startEncoder(i int32) {
	if e := &s.encoding.replicas[i]; !e.starts && !e.engine.Busy() && e.engine.Waits() {
		e.starts = true
		s.events.queue.Push(des.NewEvent(s.now, encodeStart, int64(i), i))
	}
}

// startEncoding starts a batch of an encode replica.
func (s *simulation) startEncoding(i int32) error {
	e := &s.encoding.replicas[i]
	e.starts = false
	end, ok := e.engine.Start(s.now)
	if !ok { // the requests that waited have ended
		return nil
	}
	s.events.queue.Push(des.NewEvent(end, encodeEnd, int64(i), i))
	return s.observers.notify(s, onEncode, i)
}

// endEncoding ends the batch of an encode replica. Requests of which all items are encoded go on to their replicas.
func (s *simulation) endEncoding(i int32) {
	done := s.encoding.replicas[i].engine.Finish()
	s.startEncoder(i)
	for k := range done {
		slot := done[k].Tag
		if slot == missing {
			continue
		}
		r := s.request(slot)
		if r.encoded.pending--; r.encoded.pending > 0 {
			continue
		}
		if r.out.EncodedUS.IsZero() {
			r.out.EncodedUS = stream.Micros(s.now)
		}
		to := r.replica
		if r.handoff.stage == prefilling {
			to = r.handoff.replica
		}
		at := s.now + s.deployments[s.replicas[to].deployment].model.Queueing(r.out.InputTokens)
		s.events.queue.Push(des.NewEvent(at, enqueue, r.position, slot))
	}
}

// isEncoding reports whether a request waits for encode replicas.
func (r *request) isEncoding() bool { return r.encoded != nil && r.encoded.pending > 0 }

// stopEncoding takes the items of a request, which has ended, from the queues of encode replicas. Those of batches are
// encoded.
func (s *simulation) stopEncoding(slot int32) {
	r := s.request(slot)
	for _, x := range r.encoded.at {
		s.encoding.replicas[x.replica].engine.Remove(slot)
	}
	r.encoded.pending = 0
}

// pending returns how many events of encode replicas may be pending. x may be nil.
func (x *encoding) pending() int {
	if x == nil {
		return 0
	}
	n := len(x.replicas)
	for i := range x.pools {
		n += x.pools[i].link.pending
	}
	return n
}

// addEncoderTotals adds the totals of the encode replicas to the metrics. Without failures they are up all the time.
func (s *simulation) addEncoderTotals(all *metrics.Accumulator) {
	if s.encoding == nil {
		return
	}
	for i := range s.encoding.replicas {
		e := &s.encoding.replicas[i]
		pool := &s.encoding.pools[e.pool]
		d, t := &s.deployments[pool.deployment], e.engine.Stats(s.now)
		all.AddEncoder(&metrics.EncoderTotals{Deployment: d.id, GPUs: int64(pool.gpus), Items: t.Items,
			Tokens: t.Tokens, Hits: t.Hits, PeakQueue: int64(t.PeakWaiting), UpUS: s.now - s.events.firstArrival,
			BusyUS: t.BusyUS, PerGPUHour: d.perGPUHour})
	}
}
