package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutation is a rule of the engine with the change to the fast engine that breaks it.
type mutation struct{ rule, file, old, new string }

var broken = []mutation{
	{"a sequence frees its last block first", "kv/cache.go",
		"for i := len(q.held) - 1; i >= 0; i-- {", "for i := range q.held {"},
	{"with unhashed-first blocks without a hash are freed to the front", "kv/cache.go",
		"\t\tc.free += n\n\t\tc.queueUnhashedFront(n)\n",
		"\t\tc.freeRun(c.newRun(run{node: noNode, unhashed: n}))\n"},
	{"by default they are freed to the end", "kv/cache.go",
		"\tcase c.unhashedFirst:\n", "\tcase true:\n"},
	{"the null block is not usable", "cluster/config.go",
		"return d.Computed.KVBlocks - 1 }", "return d.Computed.KVBlocks }"},
	{"the watermark is a fraction of the blocks with the null block", "sim/specs.go",
		"math.Floor(e.Watermark*float64(d.Computed.KVBlocks))", "math.Floor(e.Watermark*float64(d.UsableBlocks()))"},
	{"of two copies of a block the one registered first is hit", "kv/runs.go",
		"for r = c.firstRun.get(n); r != none; r = c.runs[r].nextOfNode {\n\t\tx := &c.runs[r]\n\t\tif x.lo <= j && j < x.hi {",
		"for r = c.firstRun.get(n); r != none; r = c.runs[r].nextOfNode {\n\t\tx := &c.runs[r]\n\t\tif x.lo <= j && j < x.hi && (x.nextOfNode == none || c.runs[x.nextOfNode].lo > j || c.runs[x.nextOfNode].hi <= j) {"},
	{"hit blocks without an owner count as needed", "kv/cache.go",
		"-c.hits+c.freeHits > ", "-c.hits > "},
	{"a decoding sequence publishes each block as it fills it", "kv/grow.go",
		"c.Publish(s, int(tokens)-int(q.lag))",
		"c.Publish(s, min(int(tokens)-int(q.lag), int(q.hashed+1)*int(c.blockSize)))"},
	{"blocks can be hit from their allocation on", "kv/cache.go",
		"c.publishBlocks(s, int32(n)/c.blockSize)", "c.publishBlocks(s, int32(n-1)/c.blockSize)"},
	{"a prompt's last token is computed even if all is cached", "engine/step.go",
		"cached := e.cache.Lookup(q.kv, tokens-1)", "cached := min(tokens-1, e.cache.Lookup(q.kv, tokens))"},
	{"the first writer of a block is hit first, even if it only decodes", "engine/step.go",
		"if n > 0 && e.cache.DependsOnWriter(q.kv) {", "if n < 0 && e.cache.DependsOnWriter(q.kv) {"},
	{"no request is admitted in a step that preempts", "engine/step.go",
		"if len(b.Preempted) == 0 {", "{"},
	{"the sequence admitted last is preempted", "engine/step.go",
		"if e.cfg.PreemptionScore == nil {\n\t\treturn last", "if e.cfg.PreemptionScore == nil {\n\t\treturn 0"},
	{"requests that finish in one step free their blocks in order of admission", "engine/finish.go",
		"\te.sortByAdmission(e.finished)\n", "\te.sortByAdmission(e.finished)\n\tslices.Reverse(e.finished)\n"},
	{"replicas with the same load are equal", "policy/routing.go",
		"x < least {", "x <= least {"},
	{"tie: first takes the lowest index", "policy/ties.go",
		"if n == 1 || t.rule == tieFirst {", "if n == 1 {"},
	{"ties have their own random numbers", "policy/ties.go",
		"b.env.Seed(\"ties\" +", "b.env.Seed(\"policy/routing\" +"},
	{"of ties the fewest requests in flight", "policy/ties.go",
		"if n == 0 || x < lowest {", "if n == 0 || x > lowest {"},
	{"each of the best is drawn", "policy/ties.go",
		"; n > 1; i++", "; n > 2; i++"},
	{"the lowest number of a tie wins", "policy/ties.go",
		"x < least {", "x > least {"},
	{"each request has its own numbers", "policy/rng.go",
		"rng(rng(rng(d).at(k.Request)).at(k.Repeat))", "rng(rng(rng(d).at(0)).at(k.Repeat))"},
	{"the better of two choices", "policy/routing.go",
		"case lb < la:", "case lb > la:"},
	{"a draw between the longest prefixes", "policy/prefix_affinity.go",
		"\t\tif s == longest {\n\t\t\tn++\n\t\t}\n", "\t\tn = 1\n"},
	{"random picks draw from all candidates", "policy/picker.go",
		"i := r.intN(len(scores))", "i := r.intN(len(scores)) / 2"},
	{"picks by score are proportional to it", "policy/picker.go",
		"x, last = x-s, i", "x, last = x-1, i"},
	{"preempted requests are first in the queue", "engine/queue.go",
		"\te.wait.first--\n\te.push(waiter{e.seqs[s].order, e.wait.first, s})",
		"\te.wait.last++\n\te.push(waiter{e.seqs[s].order, e.wait.last, s})"},
	{"the threshold cuts without chunked prefill too, before the budget", "engine/step.go",
		"n := e.limitChunk(tokens - cached)\n",
		"n := tokens - cached\n\t\tif e.cfg.ChunkedPrefill {\n\t\t\tn = e.limitChunk(n)\n\t\t}\n"},
	{"a step that ends at a deadline comes before it", "sim/sim.go",
		"\tstepEnd\n\tdeadline\n", "\tdeadline\n\tstepEnd\n"},
	{"a request enqueued as a step starts is in that step", "sim/sim.go",
		"if next > s.now && len(s.events.ready) > 0 {", "if len(s.events.ready) > 0 {"},
	{"an aborted running request keeps its blocks until the step ends", "engine/abort.go",
		"\tif e.inFlight {\n\t\treturn r, false\n\t}\n", ""},
	{"aborted requests free their blocks before those that finish in the step", "engine/finish.go",
		"\tif len(e.aborted) > 0 { // vLLM processes aborts before a step's output\n\t\te.dropAborted()\n\t}\n\te.dropFinished()\n",
		"\te.dropFinished()\n\tif len(e.aborted) > 0 {\n\t\te.dropAborted()\n\t}\n"},
	{"a single token is prefill unless there is output before it", "engine/step.go",
		"if q.generated > 0 && q.remaining() == 1 {", "if q.remaining() == 1 {"},
	{"step times round half up", "des/des.go",
		"us-float64(whole) >= 0.5", "us-float64(whole) > 0.5"},
	{"tokens of larger batches reach clients later", "latency/latency.go",
		"float64(o[3]*float64(decode))", "0*float64(decode)"},
	{"no token overtakes those of the step before", "engine/finish.go",
		"max(last+1, ", "max(0, "},
	{"the last token generated needs no slot", "sim/limits.go",
		"slots := input + output - 1\n", "slots := input + output\n"},
	// Asynchronous scheduling.
	{"the next batch is formed when a step starts", "engine/step.go",
		"if e.cfg.AsyncScheduling && e.Running()+e.Waiting() > 0 {",
		"if e.cfg.AsyncScheduling && e.Running()+e.Waiting() < 0 {"},
	{"a block can be hit when its last token has appeared", "engine/decoding.go",
		"lag, computing = 1,", "lag, computing = 0,"},
	{"a token in flight that a chunk computes cannot be hit", "engine/step.go",
		"return min(upto, int(q.input+q.emitted))", "return upto"},
	{"a token that appears publishes the block before it", "engine/finish.go",
		"int(q.input+q.emitted-1)", "int(q.input)"},
	{"a draining request keeps its batch slot", "engine/engine.go",
		"+ e.decoding.Len() + len(e.finishing)", "+ e.decoding.Len()"},
	{"a draining request can be preempted", "engine/decoding.go",
		"\te.individual = append(e.individual, e.finishing...)\n\te.finishing = e.finishing[:0]\n", ""},
	{"a batch formed ahead that is empty is not queued", "engine/step.go",
		"if e.hasNext = e.form(e.next); !e.hasNext {", "e.form(e.next)\n\t\tif e.hasNext = true; !e.hasNext {"},
	{"a token in flight is lost when its request is aborted", "engine/abort.go",
		"\tfor _, b := range []*batch{e.current, e.next} {\n\t\te.removeFromBatch(s, b)\n\t}\n", "\te.removeFromBatch(s, e.current)\n"},
	{"the victims of a batch without tokens count in the next step", "engine/step.go",
		"e.lostVictims = len(e.next.Preempted)", "e.lostVictims = 0"},
	{"a batch lists its requests in the order of admission", "engine/entries.go",
		"cmp.Compare(x.admission, y.admission)", "cmp.Compare(y.admission, x.admission)"},
	{"a victim that had its turn leaves the list", "engine/step.go",
		"\t\te.withdraw(b, q)\n", ""},
	// Rules of some versions.
	{"since 0.31 the threshold spares a lone request", "engine/chunk.go",
		"requests == 1 && e.cfg.ThresholdSparesLone", "requests == 1 && !e.cfg.ThresholdSparesLone"},
	{"waiting requests are counted for the threshold", "engine/chunk.go",
		"e.cfg.LongPrefillTokenThreshold, e.Running()+e.Waiting()", "e.cfg.LongPrefillTokenThreshold, e.Running()"},
	{"the adaptive threshold is at least an equal share of the budget", "engine/chunk.go",
		"max(t, e.cfg.MaxNumBatchedTokens/requests)", "min(t, e.cfg.MaxNumBatchedTokens/requests)"},
	{"since 0.33 those behind a request that preempts itself are scheduled", "engine/step.go",
		"if !e.cfg.ContinueAfterSelfPreemption {", "if e.cfg.ContinueAfterSelfPreemption {"},
	{"before 0.28 an idle victim skips the request behind", "engine/step.go",
		"back == 0 && e.cfg.IdleVictimSkipsNext", "back == 0 && !e.cfg.IdleVictimSkipsNext"},
	{"a busy victim skips none", "engine/step.go",
		"back == 0 && e.cfg.IdleVictimSkipsNext", "e.cfg.IdleVictimSkipsNext"},
	// Queues, victims and snapshots.
	{"the lowest order is first in the wait queue", "engine/queue.go",
		"w.order < v.order ||", "w.order > v.order ||"},
	{"equals wait in arrival order", "engine/queue.go",
		"w.rank < v.rank", "w.rank > v.rank"},
	{"of equal victims the one admitted last is preempted", "engine/step.go",
		"v > most {", "v >= most {"},
	{"a victim's tokens return to the budget", "engine/step.go",
		"\t\t\t*budget += back\n", ""},
	{"a victim's tokens leave the batch", "engine/step.go",
		"\t\te.add(b, q, int64(n), -1)\n", ""},
	{"the request behind a victim that had its turn is not skipped", "engine/step.go",
		"\t\tif v < i {\n\t\t\ti--\n\t\t}\n", ""},
	{"a batch that preempts and is empty is formed again at once", "engine/step.go",
		"if len(e.current.Preempted) == 0 {", "if len(e.current.Preempted) >= 0 {"},
	{"snapshots are read after the events of their instant", "sim/telemetry.go",
		"if at == s.now && !eventsDone {", "if at == s.now && eventsDone {"},
	{"a snapshot is read before the steps of its instant start", "sim/steps.go",
		"beforeChange(s, i, true)", "beforeChange(s, i, false)"},
	// What routers count, see and remember.
	{"a tenant's sheddable requests are counted until they leave", "sim/router.go",
		"t.sheddable += n\n", "t.sheddable++\n"},
	{"a window is open at its beginning", "sim/window.go",
		"r.times[r.first[w]] <= now-spansUS[w]", "r.times[r.first[w]] < now-spansUS[w]"},
	{"reading one field refreshes no other", "sim/telemetry.go",
		"needs.Has(t.field) && s.now-*taken >= t.us", "s.now-*taken >= t.us"},
	{"round-robin picks the longest unused candidate", "policy/routing.go",
		"] = r.turn\n", "] = 1\n"},
	{"tenants leave flow control in turn", "policy/flow.go",
		"b.nextQueue = i + 1\n", "b.nextQueue = i\n"},
	{"the highest band leaves first", "policy/flow.go",
		"cmp.Compare(p, b.priority)", "cmp.Compare(b.priority, p)"},
	{"a band waits from its ceiling on", "policy/flow.go",
		"saturation >= limits[k]", "saturation > limits[k]"},
	{"a prompt counts until its first token", "sim/load.go",
		"\t\ts.telemetry.stats[q.replica].PrefillTokens -= q.prefillTokens\n", ""},
	{"a flow queue is full when a request would have to wait", "sim/flow.go",
		"queue.Len() > f.config.Capacity {", "queue.Len() >= f.config.Capacity {"},
	{"what flow control has sent counts as queued at once", "sim/flow.go",
		"\t\tf.sent[replica].unread++\n", ""},
	{"a read of the queue does not count what is on its way", "sim/flow.go",
		"f.sent[replica].unread = f.sent[replica].inTransit", "f.sent[replica].unread = 0"},
	{"what is complete no longer counts as sent", "sim/flow.go",
		"\tcase r.queueRead == sent.reads:\n\t\tsent.unread--\n", ""},
	{"a request that ends on its way makes room", "sim/stages.go",
		"\t\ts.router.flow.recordDeparture(r)\n\t\ts.router.flow.schedule(s)\n", ""},
	{"an on-demand value is read when it is old enough, whatever read it last", "sim/flow.go",
		"v.Replicas[i].Stats.TakenUS[t.field]+t.us", "max(s.now, v.Replicas[i].Stats.TakenUS[t.field])+t.us"},
	{"the prefix index learns where prompts go", "sim/prefixes.go",
		"\t\tp.index.RecordRouting(chosen.Index, r.path, int(r.out.InputTokens))\n", ""},
	{"an eviction report is applied as soon as its lag is over", "sim/prefixes.go",
		"p.reports[n].at <= s.now {", "p.reports[n].at < s.now {"},
	{"the last token of a prompt is never expected to be cached", "sim/limits.go",
		"((input - 1) / l.blockSize)", "(input / l.blockSize)"},
	// Variables of policies.
	{"all updates see the old values", "policy/memory.go",
		"if u.next[i] = x; !ok {", "if u.next[i], u.vars[i] = x, x; !ok {"},
	{"an update follows its decision", "policy/stateful.go",
		"\td := p.Admitter.Admit(v)\n\tp.updates.admitted = d.Action == Admit\n\tp.updates.run(v)\n",
		"\tp.updates.run(v)\n\td := p.Admitter.Admit(v)\n"},
	{"a routing update sees the chosen replica", "policy/stateful.go",
		"candidate{v, &v.Replicas[c.Candidate]}", "candidate{v, &v.Replicas[0]}"},
	// Sessions.
	{"a step waits for the last of its parents", "sim/sessions.go",
		"c.at, c.criticalUS = max(c.at, at),", "c.at, c.criticalUS = at,"},
	{"the step after an output begins when the client has the output", "sim/steps.go",
		"callCompleted(s, sessionSlot, step, at, clientTime)", "callCompleted(s, sessionSlot, step, at, stream.Micros(s.now))"},
	{"the positions of a session's steps are consecutive", "sim/sessions.go",
		"v.position+int64(k)))", "v.position+int64(len(v.Steps)-1-k)))"},
	{"a session cut by the horizon does not keep the run going", "sim/sessions.go",
		"\ts.requests.open--\n\tif v.cutByHorizon {\n\t\treturn nil\n\t}\n", "\tif v.cutByHorizon {\n\t\treturn nil\n\t}\n\ts.requests.open--\n"},
	// The other switches.
	{"a full reservation counts all tokens", "engine/step.go",
		"reserve = tokens\n", "reserve = cached + n\n"},
	{"the watermark does not apply if nothing runs", "engine/step.go",
		"if e.Running() > 0 {\n\t\t\tspare", "{\n\t\t\tspare"},
	{"a window's sum does not grow with a sequence that fills it", "engine/window.go",
		"\tw.partial -= n\n\tw.sum -= n * (w.size - tick)\n\tw.full += n\n",
		"\tif n > 1 {\n\t\tw.partial -= n\n\t\tw.sum -= n * (w.size - tick)\n\t\tw.full += n\n\t}\n"},
	{"a chunk's tokens see no further than the window", "engine/window.go",
		"(n-unclipped)*w.size", "(n-unclipped)*(w.size+1)"},
	// KV cache groups.
	{"a hit needs the blocks of all equal groups", "kv/grouphits.go",
		"range k.members {", "range k.members[len(k.members)-1:] {"},
	{"a window's hit ends with all blocks that a token needs", "kv/grouphits.go",
		"if found++; found == tail {", "if found++; found > 0*tail {"},
	{"a hit fills its last block in all groups", "kv/grouphits.go",
		"(j+1)*size%l.alignment != 0", "(j+1)*size%size != 0"},
	{"a kind that shortens the hit makes the others look again", "kv/grouphits.go",
		"if hit == before {", "if hit <= before {"},
	{"of a window's hit a sequence holds only what it needs", "kv/groups.go",
		"return max(0, n-int32(g.Window)+1) / int32(g.BlockSize)", "return max(0, n-int32(g.Window)) / int32(g.BlockSize)"},
	{"a chunk needs no blocks of the chunk before", "kv/groups.go",
		"return (n - n%int32(g.Window)) / int32(g.BlockSize)", "return max(0, n-n%int32(g.Window)-1) / int32(g.BlockSize)"},
	{"the blocks that a window leaves are freed from the last one", "kv/groupstore.go",
		"for j := hi - 1; j >= lo; j-- {", "for j := lo; j < hi; j++ {"},
	{"groups put freed blocks without a hash to the front", "kv/blockpool.go",
		"case x.node != none || !p.c.unhashedFirst:", "case true:"},
	{"by default groups free them to the end", "kv/blockpool.go",
		"case x.node != none || !p.c.unhashedFirst:", "case x.node != none:"},
	{"before 0.24 full blocks after the last multiple of all sizes are hashed", "kv/groupstore.go",
		"\tif !g.rules.HashAll {\n", "\tif true {\n"},
	{"before 0.24 blocks of windows are hashed that no hit needs", "kv/groupstore.go",
		"group.Kind != RecurrentState || g.rules.HashAll", "group.Kind != RecurrentState"},
	{"a sparse window is hashed where a prompt ends", "kv/groupstore.go",
		"{q.prompt - 1, q.junction}", "{q.prompt, q.junction}"},
	{"a sparse window is hashed where prompts part", "kv/groupstore.go",
		"q.junction = longest", "q.junction = 0"},
	{"a sparse window is hashed at multiples of the interval", "kv/groupstore.go",
		"interval = int32(g.rules.Interval)", "interval = 0"},
	{"a window keeps what a step in flight needs", "kv/groupstore.go",
		"scheduled -= inFlight\n", "scheduled -= 0 * inFlight\n"},
	{"it does so for the first token after a prompt", "kv/groupevents.go",
		"past = tokens - q.inFlight\n", "past = tokens - r.lag\n"},
	{"and for later tokens", "kv/groupevents.go",
		"past -= r.lag\n", "past -= 0\n"},
	{"a full reservation counts no more of a window than it can hold", "kv/groupstore.go",
		"want = group.reserve(&g.rules, n)", "want = group.blocksFor(n)"},
	{"a window can begin and end within a block", "kv/groups.go",
		"most, more = most-1, 1 //", "most, more = most-1, 0 //"},
	{"sequences free and take blocks in order of admission", "kv/groupevents.go",
		"q.order < g.seqs[list[i-1]].order", "q.order > g.seqs[list[i-1]].order"},
	{"also those that compute prompts", "kv/groupstore.go",
		"\tg.settleBefore(g.seqs[s].order)\n", ""},
	{"the end of a prompt is hashed when it fills a block in all groups", "kv/groupevents.go",
		"next = min(next, shared)", "next += 0 * min(next, shared)"},
	{"of a decoding writer and follower the one admitted first hashes first", "kv/groupevents.go",
		"\t\ttick--\n", ""},
	// Groups of recurrent states.
	{"only the block at the end of a chunk has a state", "kv/states.go",
		"return min(blocks, 1+g.checkpoints(q, i, n))", "return blocks"},
	{"the last chunk also writes an earlier state", "kv/states.go",
		"return min(blocks, 1+g.checkpoints(q, i, n))", "return min(blocks, 1)"},
	{"earlier chunks do not if only ends of prompts are kept", "kv/states.go",
		"n < q.prefillEnd", "n < 0*q.prefillEnd"},
	{"output that is computed again belongs to a prompt", "kv/groupstore.go",
		"max(q.prompt, int32(n))", "q.prompt"},
	{"a full reservation counts one state", "kv/groupstore.go",
		"whole && group.Kind != RecurrentState", "whole"},
	{"a request waits for a state of the same step", "kv/groupstore.go",
		" || g.isFresh(s)", ""},
	{"but not for one of a step before", "kv/states.go",
		"c.groups.fresh[:0], c.tick", "c.groups.fresh, c.tick"},
	{"nor for one that a decoding sequence had before", "kv/states.go",
		"if !r.growing || end > r.base+g.began-int64(r.lag) {", "if !r.growing || end > 0*int64(r.lag) {"},
	{"before 0.31 states behind a gap stay", "kv/groupstore.go",
		"lo = table.runBefore(hi)", "lo += 0 * table.runBefore(hi)"},
	{"except for the one before the newest", "kv/groupstore.go",
		"table.last < skipped {", "table.last < 0*skipped {"},
	{"in 0.15 only chunks of prompts are cut", "engine/align.go",
		"if tokens = int(q.input); q.emitted > 0 {", "if tokens = int(q.input); q.emitted < 0 {"},
	{"a chunk ends with the last full block", "engine/align.go",
		"\t\tn = last - start\n", "\t\tn = n + 0*last\n"},
	{"and before it after a multiple of blocks", "engine/align.go",
		"\t\tn -= n % size\n", "\t\tn -= 0 * size\n"},
	{"a first chunk ends where a prompt leaves another", "engine/align.go",
		"n = shared - shared%size", "n = max(n, shared-shared%size)"},
	{"only a first one does before 0.28", "engine/align.go",
		" && q.state == waiting &&", " &&"},
	{"since 0.28 later chunks do, too", "engine/align.go",
		"\t\tcut(start + (junction-start)/size*size)\n", ""},
	{"a chunk that begins within a block ends with it", "engine/align.go",
		"\t\t\tcut((start/size + 1) * size)\n", ""},
	{"a block can have more tokens than a step", "engine/align.go",
		"aligned > start || size <= most {", "aligned >= 0*most {"},
	{"a long-prefill threshold limits a step, too", "engine/align.go",
		"e.cfg.MaxSequenceTokens, e.cfg.LongPrefillTokenThreshold}", "e.cfg.MaxSequenceTokens}"},
	{"with a checkpoint a prompt is not cut", "engine/align.go",
		"\tif !inside {\n", "\tif true || inside {\n"},
	{"a checkpoint is before the last token", "engine/align.go",
		"start+size <= (prefillEnd-1)/size*size", "start+size <= prefillEnd/size*size"},
	{"since 0.33 the last full block is before the last token", "engine/align.go",
		"last = (tokens - 1) / size * size", "last -= 0 * tokens"},
}

// path is that of the file to be changed.
func (m mutation) path(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The comparisons that must notice a mutation, quick ones first.
var comparisons = []string{
	"^(TestScenarios|TestStories|TestSessionCutByHorizon|TestTiedPrefixes)$",
	"^TestReferenceOnSessions$", "^(TestReference|TestReferenceOnFollowers)$",
}

// TestMutations breaks the rules one at a time and expects the comparison with the
// reference, or a story or scenario, to notice each.
func TestMutations(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("builds an engine with broken rules; run without -short and -race")
	}
	all := slices.Concat(broken, brokenRouters, brokenProfiles)
	m := buildMutations(t, all)
	if failed := runMutation(t, m.binary, -1, comparisons[0]); failed != nil {
		t.Fatalf("without a mutation the tests fail: %v", failed)
	}
	for i, b := range all {
		t.Run(b.rule, func(t *testing.T) {
			t.Parallel()
			binary := m.binary
			if m.alone[i] {
				binary = filepath.Join(t.TempDir(), "mutation.test")
				text, err := os.ReadFile(b.path(t))
				if err != nil {
					t.Fatal(err)
				}
				buildOverlay(t, binary, map[string][]byte{b.path(t): []byte(strings.Replace(string(text), b.old, b.new, 1))})
			}
			patterns := comparisons
			switch {
			case i >= len(broken)+len(brokenRouters):
				patterns = []string{profileComparison}
			case i >= len(broken):
				patterns = []string{routerComparison}
			}
			failed := runMutation(t, binary, i, patterns...)
			if failed == nil {
				t.Fatalf("the tests pass without the rule")
			}
			t.Logf("caught by %v", failed)
		})
	}
}
