package sim

import (
	"fmt"
	"slices"

	"blis/pkg/stream"
)

// askEmbeddings starts the transfers of the embeddings for which replica i has asked.
func (s *simulation) askEmbeddings(i int32) {
	d := &s.deployments[s.replicas[i].deployment]
	if d.encoders == noEncoders {
		return
	}
	x := s.encoding
	asked := s.replicas[i].engine.AskedEmbeddings()
	if len(asked) == 0 {
		return
	}
	pool := &x.pools[d.encoders]
	for _, a := range asked {
		r := s.request(a.Tag)
		at := slices.IndexFunc(r.encoded.at, func(y encodedAt) bool { return y.content == a.Content })
		t := embeddingTransfer{Embedding: a, number: x.count, from: r.encoded.at[at].replica, replica: i,
			request: r.out.ID, asked: s.now}
		x.count++
		slot := x.addTransfer(&t)
		pool.link.fair.Ask(s.now, slot, t.from-int32(pool.first), i, float64(t.bytes(s)))
	}
	s.scheduleEmbeddings(d.encoders)
}

func (x *encoding) addTransfer(t *embeddingTransfer) int32 {
	if last := len(x.spare) - 1; last >= 0 {
		slot := x.spare[last]
		x.spare = x.spare[:last]
		x.transfers[slot] = *t
		return slot
	}
	x.transfers = append(x.transfers, *t)
	return int32(len(x.transfers) - 1)
}

// scheduleEmbeddings schedules the next change of the link of a pool, unless an event before it is pending.
func (s *simulation) scheduleEmbeddings(pool int) {
	s.encoding.pools[pool].link.schedule(&s.events.queue, embeddingChange, pool)
}

// changeEmbeddings ends the transfers of a pool that are done now.
func (s *simulation) changeEmbeddings(pool int32) error {
	for _, slot := range s.encoding.pools[pool].link.change(s.now) {
		if err := s.endEmbeddings(slot); err != nil {
			return err
		}
	}
	s.scheduleEmbeddings(int(pool))
	return nil
}

// endEmbeddings ends the transfer in a slot. Its replica may then have work.
func (s *simulation) endEmbeddings(slot int32) error {
	t := &s.encoding.transfers[slot]
	t.ended = s.now
	for _, tag := range s.replicas[t.replica].engine.Receive(t.Content) {
		if r := s.request(tag); r.out.ScheduledUS.IsZero() && r.out.PrefillScheduledUS.IsZero() {
			r.out.EmbeddingsUS = stream.Micros(s.now)
		}
	}
	s.encoding.spare = append(s.encoding.spare, slot)
	s.markReady(t.replica)
	return s.observers.notify(s, onEmbeddings, slot)
}

// checkEmbeddings checks that a replica waits for the embeddings that move to it, and for no others, and the encode
// replicas.
func (s *simulation) checkEmbeddings(r *replica) error {
	n := 0
	for slot := range s.encoding.transfers {
		if t := &s.encoding.transfers[slot]; &s.replicas[t.replica] == r &&
			!slices.Contains(s.encoding.spare, int32(slot)) {
			n++
		}
	}
	if asked := r.engine.ReceivesEmbeddings(); asked != n {
		return fmt.Errorf("it waits for the embeddings of %d items, %d are on their way", asked, n)
	}
	for k := range s.encoding.replicas {
		if err := s.encoding.replicas[k].engine.Check(); err != nil {
			return err
		}
	}
	return nil
}

// bytes is how many bytes move.
func (t *embeddingTransfer) bytes(s *simulation) int64 {
	return int64(t.Tokens) * s.encoding.pools[s.encoding.replicas[t.from].pool].bytesPerToken
}

// embeddings records a transfer of embeddings that has ended.
func (o *traceWriter) embeddings(s *simulation, t *embeddingTransfer) error {
	pool := &s.encoding.pools[s.encoding.replicas[t.from].pool]
	return o.records.Any(&stream.Transfer{Kind: stream.KindTransfer, ID: fmt.Sprintf("embeddings-%06d", t.number),
		Type: stream.TransferEncoded, From: stream.MemoryGPU, To: stream.MemoryCPU,
		Deployment: s.deployments[s.replicas[t.replica].deployment].id, Replica: s.replicas[t.replica].index,
		PrefillReplica: stream.NoIndex, EncodeReplica: stream.Index(int(t.from) - pool.first), Request: t.request,
		Tokens: int64(t.Tokens), Bytes: t.bytes(s),
		AskedUS: stream.Micros(t.asked), StartedUS: stream.Micros(t.asked), EndedUS: stream.Micros(t.ended)})
}
