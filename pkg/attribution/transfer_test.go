package attribution

import (
	"strings"
	"testing"

	"blis/pkg/stream"
)

// A prompt waits 100 ms for the prefill replica and is computed in 50 ms. It then waits until its blocks have come, of
// which the replica that decodes has none for a part, and until it is in a batch there, 10 ms before the first token.
func TestWhereADisaggregatedRequestWaits(t *testing.T) {
	for _, c := range []struct {
		name                                    string
		prefillMS, transferMS, blocksMS, slotMS stream.Micros
		prefill, transfer, decode               bool
		hopMS                                   stream.Micros
		isKnown                                 bool // when the transfer started
		overlapMS                               stream.Micros
	}{
		{"prefill", 1000, 100, 0, 0, true, false, false, 0, true, 0},
		{"link", 100, 1000, 100, 0, false, true, false, 0, false, 0},
		{"link, start known", 100, 1000, 100, 0, false, true, false, 0, true, 0},
		{"blocks", 100, 1000, 900, 0, false, false, true, 0, false, 0},
		{"blocks, start known", 100, 1000, 900, 0, false, false, true, 0, true, 0},
		{"slots", 100, 100, 0, 1000, false, false, true, 0, true, 0},
		{"slots, then a transfer", 100, 100, 0, 900, false, false, true, 0, true, 0},
		{"hop", 100, 100, 0, 100, false, false, false, 900, true, 0},
		{"none", 300, 300, 0, 300, false, false, false, 0, true, 0},
		{"pieces move before the prompt is computed", 100, 100, 0, 0, false, false, false, 0, true, 1000},
		{"and after that", 100, 1000, 0, 0, false, true, false, 0, true, 40},
	} {
		a := New(header(1))
		o := served("r", 0, 0, 0)
		o.PrefillReplica, o.PrefillEnqueuedUS = 0, 0
		o.PrefillScheduledUS = o.PrefillEnqueuedUS + 1000*c.prefillMS
		o.PrefilledUS = o.PrefillScheduledUS + 50_000
		o.PrefilledUS += 1000 * c.overlapMS
		o.EnqueuedUS = o.PrefilledUS + 1000*c.hopMS
		o.TransferredUS = o.EnqueuedUS + 1000*c.transferMS
		if o.TransferStartedUS = never; c.isKnown {
			o.TransferStartedUS = o.EnqueuedUS + 1000*c.blocksMS - 1000*c.overlapMS
		}
		o.BlockWaitUS, o.SlotWaitUS = int64(1000*c.blocksMS), int64(1000*c.slotMS)
		o.ScheduledUS = o.TransferredUS + 1000*c.slotMS
		o.EnqueuedUS -= 1000 * c.overlapMS
		o.FirstTokenUS = o.ScheduledUS + 10_000
		o.CompletedUS = o.FirstTokenUS + 5_000_000 // decoding holds blocks for longer than any transfer
		a.Outcome(&o, false)
		a.derive()
		a.measureTransfers()
		r := a.requests.at(0)
		got := [3]bool{prefillPoolFull.holds(a, r), slowTransfer.holds(a, r), decodePoolFull.holds(a, r)}
		if want := [3]bool{c.prefill, c.transfer, c.decode}; got != want || slowHandoff.holds(a, r) != (c.hopMS > 0) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

// A request whose blocks were freed before its decode replica asked for them failed for this reason alone.
func TestLeaseTooShort(t *testing.T) {
	for reason, want := range map[string]bool{stream.ReasonTransferTimeout: true, stream.ReasonReplicaLost: false} {
		a := New(header(1))
		o := served("r", 0, 0, 0)
		o.State, o.Reason = stream.StateFailed, reason
		o.PrefillReplica, o.PrefillEnqueuedUS, o.PrefillScheduledUS = 0, 0, 0
		o.PrefilledUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS = 50_000, stream.Never, stream.Never, stream.Never
		o.CompletedUS, o.EndedUS = stream.Never, 550_000
		a.Outcome(&o, false)
		r := a.requests.at(0)
		if got := leaseTooShort.holds(a, r); got != want || r.handoffUS() != 500_000 {
			t.Errorf("%s: %v, %d us", reason, got, r.handoffUS())
		}
	}
}

// A request whose blocks were freed is computed again. That counts if most of its time to the first token has passed
// since then, and then it did not wait for room for a transfer.
func TestLeaseTooShortToRecompute(t *testing.T) {
	for _, c := range []struct {
		computedMS  int64 // by the prefill replica
		transferred bool
		want        bool
	}{{400, false, true}, {600, false, false}, {400, true, false}} {
		a := New(header(1))
		o := served("r", 0, 0, 0)
		o.ClearPrefill()
		o.PrefillReplica, o.PrefillEnqueuedUS, o.PrefillScheduledUS = 0, 0, 0
		o.PrefilledUS = stream.Micros(1000 * c.computedMS)
		if c.transferred {
			o.TransferStartedUS, o.TransferredUS = o.PrefilledUS, o.PrefilledUS+1
		}
		o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS = o.PrefilledUS+1, 900_000, 1_000_000
		a.Outcome(&o, false)
		a.derive()
		a.measureTransfers()
		a.measureHeldBack()
		r := a.requests.at(0)
		if got := leaseTooShort.holds(a, r); got != c.want || r.isRecomputed() == c.transferred ||
			!c.transferred && decodePoolFull.holds(a, r) {
			t.Errorf("%+v: %v, decode pool full: %v", c, got, decodePoolFull.holds(a, r))
		}
	}
}

// TestPromptsFromPrefillReplicasAreNoWork: of three requests that start while another one waits or decodes, one has its
// prompt of 100 tokens from a prefill replica, one computes it again, and one has no prefill replica.
func TestPromptsFromPrefillReplicasAreNoWork(t *testing.T) {
	a := New(header(1))
	waits := served("waits", 0, 0, 500_000)
	waits.ClearPrefill()
	waits.CompletedUS, waits.OutputTokens = waits.FirstTokenUS+500_000, 11
	for i, o := range []stream.Outcome{waits, served("a", 0, 1, 10), served("b", 0, 1, 10), served("c", 0, 1, 10)} {
		if o.ClearPrefill(); i == 1 || i == 2 {
			o.PrefillReplica, o.PrefillEnqueuedUS, o.PrefillScheduledUS, o.PrefilledUS = 0, 0, 0, 5
		}
		if i == 1 {
			o.TransferStartedUS, o.TransferredUS = 5, 6
		}
		o.InputTokens, o.CachedTokens = 100, 0
		a.Outcome(&o, false)
	}
	want := []int64{100, 0, 100, 100}
	for i, r := range a.requests.all() {
		if r.ownPrompt() != want[i] || r.ownWork() != want[i]+int64(r.tokens.output) ||
			r.work() != 100+int64(r.tokens.output) {
			t.Errorf("request %d: prompt %d, work %d of %d", i, r.ownPrompt(), r.ownWork(), r.work())
		}
	}
	a.Find()
	c := &a.requests.at(0).contention
	if output := int64(a.requests.at(1).tokens.output); c.ahead.total != 200+3*output {
		t.Errorf("%d tokens started, want 200 and 3 x %d", c.ahead.total, output)
	}
}

// Requests that a server with limits rejects have the condition; others do not.
func TestServerLimit(t *testing.T) {
	for _, c := range []struct {
		state, reason string
		want          bool
	}{{stream.StateRejected, stream.ReasonQueuedReqs, true}, {stream.StateRejected, stream.ReasonQueuedTokens, true},
		{stream.StateRejected, stream.ReasonAdmission, false}, {stream.StateFailed, stream.ReasonQueuedReqs, false}} {
		a := New(header(1))
		o := served("r", 0, 0, 0)
		o.State, o.Reason, o.EndedUS = c.state, c.reason, 50_000
		o.EnqueuedUS, o.ScheduledUS = stream.Never, stream.Never
		o.FirstTokenUS, o.CompletedUS = stream.Never, stream.Never
		a.Outcome(&o, false)
		r := a.requests.at(0)
		if got := serverLimit.holds(a, r); got != c.want {
			t.Errorf("%s by %s: %v", c.state, c.reason, got)
		}
		p := &Pattern{run: a, losing: []*request{r}}
		n := 0
		if c.want {
			n = 1
		}
		if got := p.rejectedBy(stream.ReasonQueuedReqs) + p.rejectedBy(stream.ReasonQueuedTokens); got != n {
			t.Errorf("%s by %s counts %d times", c.state, c.reason, got)
		}
	}
}

// Requests are held back for 900 ms before routing, by flow control, or by backpressure: those on their way are mostly
// in the prefill pool, or mostly wait for blocks.
func TestWhatHoldsRequestsBack(t *testing.T) {
	for _, c := range []struct {
		name                  string
		backpressure, flow    bool
		blocksMS              int64
		prefill, decode, held bool // conditions that hold; held: flow control
	}{
		{"flow control", false, true, 0, false, false, true},
		{"flow control with backpressure", true, true, 0, false, false, true},
		{"prefill pool", true, false, 40, true, false, false},
		{"decode pool", true, false, 300, false, true, false},
	} {
		h := header(1)
		config := h.Run.Config.(map[string]any)
		if c.flow {
			config["control_plane"] = map[string]any{"flow_control": map[string]any{"order": "fifo"}}
		}
		if c.backpressure {
			d := config["deployments"].([]any)[0].(map[string]any)
			d["backpressure"] = map[string]any{"max_waiting": 4}
		}
		a := New(h)
		o := served("r", 0, 0, 0)
		o.RoutedUS = 900_000
		o.PrefillReplica, o.PrefillEnqueuedUS, o.PrefillScheduledUS, o.PrefilledUS = 0, 900_000, 900_000, 950_000
		o.EnqueuedUS, o.BlockWaitUS, o.TransferStartedUS = 950_000, 1000*c.blocksMS, never
		o.TransferredUS = o.EnqueuedUS + stream.Micros(1000*c.blocksMS)
		o.ScheduledUS, o.FirstTokenUS = o.TransferredUS, o.TransferredUS+10_000
		o.CompletedUS = o.FirstTokenUS + 5_000_000
		a.Outcome(&o, false)
		a.derive()
		a.measureTransfers()
		a.measureHeldBack()
		r := a.requests.at(0)
		got := [3]bool{prefillPoolFull.holds(a, r), decodePoolFull.holds(a, r), flowControl.holds(a, r)}
		if want := [3]bool{c.prefill, c.decode, c.held}; got != want {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

// A storage is behind the tiers of both replicas: B waits for what the storage gives to A at the other replica, but not
// for A's load from its own tier. With a storage for each replica it waits only for its own blocks.
func TestWaitsForLoadsFromASharedStorage(t *testing.T) {
	for shared, want := range map[bool]int64{true: 1_500_000, false: 500_000} {
		h := header(2)
		d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
		d["computed"] = map[string]any{"kv_block_bytes": 1_600_000}
		link := map[string]any{"latency_us": 0, "gb_per_s": 1}
		d["kv_tiers"] = []any{map[string]any{"load": map[string]any{"latency_us": 0, "gb_per_s": 1e9}},
			map[string]any{"load": link, "shared": shared}}
		a := New(h)
		for i, tokens := range []int64{10_000, 5_000} {
			o := served(string(rune('A'+i)), stream.Index(i), 0, int64(1000+i*1000))
			o.LoadedTokens = &stream.LoadedTokens{Storage: tokens}
			a.Outcome(&o, false)
		}
		a.derive()
		a.computeStats()
		a.measureReplicas()
		if got := a.requests.at(1).evidence.tierUS; got != want {
			t.Errorf("shared %v: %d µs of loads, want %d", shared, got, want)
		}
	}
}

// The queues of decode replicas say nothing: a mean is of the requests for which they do.
func TestShortestQueuesThatAreKnown(t *testing.T) {
	found := func(shortest int32) *request {
		return &request{derived: &derived{contention: contention{shortest: shortest}}}
	}
	p := &Pattern{losing: []*request{found(-1), found(-1)}}
	if got := p.shortestQueueText(); got != "" {
		t.Errorf("of unknown queues: %q", got)
	}
	p.losing = append(p.losing, found(4), found(6))
	if got := p.shortestQueueText(); got != "; the shortest queue held 5.0 requests" {
		t.Errorf("%q", got)
	}
}

// A smaller model leaves more memory for blocks, unless their number is set.
func TestFewerBitsForBlocks(t *testing.T) {
	for blocks, want := range map[float64]int{0: 1, 1500: 0} {
		h := header(1)
		d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
		engine, _ := d["engine"].(map[string]any)
		if engine == nil {
			engine = map[string]any{}
			d["engine"] = engine
		}
		if blocks > 0 {
			engine["num_gpu_blocks_override"] = blocks
		}
		a := New(h)
		o := served("A", 0, 0, 10)
		a.Outcome(&o, false)
		x := &proposal{Analyzer: a, p: &Pattern{losing: []*request{a.requests.at(0)}}}
		if got := x.fewerBitsForBlocks(); len(got) != want {
			t.Errorf("%g blocks: %v, want %d changes", blocks, got, want)
		}
	}
}

// Dynamo's router does not go with pools, so it is not proposed there.
func TestDynamoRouterIsNotProposedForPools(t *testing.T) {
	for pools, want := range map[bool]int{false: 1, true: 0} {
		h := header(1)
		if pools {
			d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
			d["prefill"] = map[string]any{"replicas": 1}
		}
		if got := (&proposal{Analyzer: New(h)}).dynamoRouter(); len(got) != want {
			t.Errorf("pools %v: %v, want %d changes", pools, got, want)
		}
	}
}

// A router's only class has no order of its own to propose; with several, classes are served by their priority.
func TestOrderOfClasses(t *testing.T) {
	for classes, want := range map[string]int{"chat": 0, "chat batch": 2} {
		a := New(header(1))
		for i, class := range strings.Fields(classes) {
			o := served(string(rune('A'+i)), 0, 0, 10)
			o.SLOClass = class
			a.Outcome(&o, false)
		}
		if got := (&proposal{Analyzer: a}).inOrder(); len(got) != want {
			t.Errorf("%s: %v, want %d changes", classes, got, want)
		}
	}
}

// The link loads 1 GB/s, a token has 100,000 bytes: 10,000 tokens take 1 s. B waits for A's load and its own one; C
// comes later and waits for nothing of that kind.
func TestWaitsForLoadsFromATier(t *testing.T) {
	h := header(1)
	d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
	d["computed"] = map[string]any{"kv_block_bytes": 1_600_000}
	d["kv_tiers"] = []any{map[string]any{"load": map[string]any{"latency_us": 0, "gb_per_s": 1}}}
	a := New(h)
	for _, r := range []struct {
		id           string
		atMS, waitMS int64
		loaded       int64
	}{{"A", 0, 1000, 10_000}, {"B", 500, 2000, 15_000}, {"C", 3000, 1000, 0}} {
		o := served(r.id, 0, r.atMS, r.waitMS)
		if r.loaded > 0 {
			o.LoadedTokens = &stream.LoadedTokens{CPU: r.loaded}
		}
		a.Outcome(&o, false)
	}
	a.derive()
	a.computeStats()
	a.measureReplicas()
	for i, want := range []int64{1_000_000, 2_000_000, 0} {
		if got := a.requests.at(i).evidence.tierUS; got != want || slowTier.holds(a, a.requests.at(i)) != (want > 0) {
			t.Errorf("%s: %d µs of loads, want %d", a.requests.at(i).id(), got, want)
		}
	}
}

// With blocks of 2048 tokens nothing of a prompt of 2000 can be cached, with blocks of 16 it could.
func TestBlocksTooLarge(t *testing.T) {
	for _, size := range []int{16, 2048} {
		h := header(1)
		d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
		d["engine"] = map[string]any{"block_size": size}
		a := New(h)
		o := served("r", 0, 0, 100)
		o.InputTokens = 2000
		a.Outcome(&o, false)
		r := a.requests.at(0)
		a.derive()
		r.evidence.promptsAhead, r.contention.ahead.total = 4000, 5000
		if got := blocksTooLarge.holds(a, r); got != (size == 2048) {
			t.Errorf("block size %d: %t", size, got)
		}
	}
}
