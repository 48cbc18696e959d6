package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mutation is a rule of the engine with the change to the fast engine that breaks it.
type mutation struct{ rule, file, old, new string }

var broken = []mutation{
	{"a sequence frees its last block first", "kv/cache.go",
		"for i := len(q.holds) - 1; i >= 0; i-- {", "for i := range q.holds {"},
	{"of two copies of a block the one registered first is hit", "kv/runs.go",
		"for r = c.index.get(n); r != none; r = c.runs[r].later {\n\t\tx := &c.runs[r]\n\t\tif x.lo <= j && j < x.hi {",
		"for r = c.index.get(n); r != none; r = c.runs[r].later {\n\t\tx := &c.runs[r]\n\t\tif x.lo <= j && j < x.hi && (x.later == none || c.runs[x.later].lo > j || c.runs[x.later].hi <= j) {"},
	{"hit blocks without holder count as needed", "kv/cache.go",
		"-c.hits+c.idle > ", "-c.hits > "},
	{"a sequence that only decodes makes its full blocks findable as it fills them", "kv/grow.go",
		"c.Know(s, int(tokens)-int(q.behind))",
		"c.Know(s, min(int(tokens)-int(q.behind), int(q.hashed+1)*int(c.blockSize)))"},
	{"blocks can be found from their allocation on", "kv/cache.go",
		"c.register(s, int32(tokens)/c.blockSize)", "c.register(s, int32(tokens-1)/c.blockSize)"},
	{"a prompt's last token is computed even if all is cached", "engine/step.go",
		"cached := e.cache.Lookup(q.kv, tokens-1)", "cached := min(tokens-1, e.cache.Lookup(q.kv, tokens))"},
	{"who writes a block first is found first, also where it only decodes", "engine/step.go",
		"if n > 0 && e.cache.Writing(q.kv) {", "if n < 0 && e.cache.Writing(q.kv) {"},
	{"nobody is admitted in a step that preempts", "engine/step.go",
		"if len(b.Preempted) == 0 {", "{"},
	{"the sequence admitted last is preempted", "engine/step.go",
		"if e.cfg.Victim == nil {\n\t\treturn last", "if e.cfg.Victim == nil {\n\t\treturn 0"},
	{"requests that finish in one step free their blocks in order of admission", "engine/finish.go",
		"\te.sortByTurn(e.finished)\n", "\te.sortByTurn(e.finished)\n\tslices.Reverse(e.finished)\n"},
	{"of equal replicas the one with the lowest index is chosen", "policy/routing.go",
		"x < least {", "x <= least {"},
	{"preempted requests are first in the queue", "engine/queue.go",
		"\te.wait.first--\n\te.push(waiter{e.seqs[s].order, e.wait.first, s})",
		"\te.wait.last++\n\te.push(waiter{e.seqs[s].order, e.wait.last, s})"},
	{"the threshold cuts without chunked prefill too, before the budget", "engine/step.go",
		"n := e.capped(tokens - cached)\n",
		"n := tokens - cached\n\t\tif e.cfg.ChunkedPrefill {\n\t\t\tn = e.capped(n)\n\t\t}\n"},
	{"a step that ends at a deadline comes before it", "sim/sim.go",
		"\tstepEnd\n\tdeadline\n", "\tdeadline\n\tstepEnd\n"},
	{"what is enqueued as a step starts is in that step", "sim/sim.go",
		"if next > s.now && len(s.starting) > 0 {", "if len(s.starting) > 0 {"},
	{"a running request that is aborted keeps its blocks until the step ends", "engine/abort.go",
		"\tif e.inFlight {\n\t\treturn r, false\n\t}\n", ""},
	{"a lone token is a prompt's unless there is output before it", "engine/step.go",
		"if q.generated > 0 && q.want() == 1 {", "if q.want() == 1 {"},
	{"step times round half up", "des/des.go",
		"us-whole >= 0.5", "us-whole > 0.5"},
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
	{"a block is findable when its last token has appeared", "engine/steady.go",
		"behind = 1 //", "behind = 0 //"},
	{"what a chunk computes of a token in flight is not findable", "engine/step.go",
		"return min(upto, int(q.input+q.shown))", "return upto"},
	{"a token that appears makes the block before it findable", "engine/finish.go",
		"int(q.input+q.shown-1)", "int(q.input)"},
	{"who waits for its last token keeps its seat", "engine/engine.go",
		"+ e.steadies.Len() + len(e.endings)", "+ e.steadies.Len()"},
	{"who waits for its last token can be preempted", "engine/steady.go",
		"\te.singles = append(e.singles, e.endings...)\n\te.endings = e.endings[:0]\n", ""},
	{"a batch formed ahead that is empty is not queued", "engine/step.go",
		"e.isQueued = e.form(e.ahead)", "e.form(e.ahead)\n\t\te.isQueued = true"},
	{"a token in flight is lost when its request is aborted", "engine/abort.go",
		"\tfor _, b := range []*batch{e.current, e.ahead} {\n\t\te.withdraw(s, b)\n\t}\n", "\te.withdraw(s, e.current)\n"},
	// Queues, victims and snapshots.
	{"the lowest order is first in the wait queue", "engine/queue.go",
		"w.order < v.order ||", "w.order > v.order ||"},
	{"equals wait as they came", "engine/queue.go",
		"w.rank < v.rank", "w.rank > v.rank"},
	{"of equal victims the one admitted last gives way", "engine/step.go",
		"v > most {", "v >= most {"},
	{"a victim gives its tokens back to the budget", "engine/step.go",
		"\t\t\t\t*budget += back\n", ""},
	{"what a victim has in the batch leaves it", "engine/step.go",
		"\tif n > 0 {\n\t\te.add(b, q, int64(n), -1)\n\t}\n", ""},
	{"who comes behind a victim that had its turn is not passed over", "engine/step.go",
		"\t\t\tif at < i {\n\t\t\t\ti--\n\t\t\t}\n", ""},
	{"a batch that preempts and is empty is formed again at once", "engine/step.go",
		"if len(e.current.Preempted) == 0 {", "if len(e.current.Preempted) >= 0 {"},
	{"snapshots are read after what happens at their instant", "sim/telemetry.go",
		"if at == s.now && !refreshed {", "if at == s.now && refreshed {"},
	{"a snapshot is read before the steps of its instant start", "sim/steps.go",
		"s.before(i, true)", "s.before(i, false)"},
	// What routers count, see and remember.
	{"a tenant's sheddable requests are counted until they leave", "sim/router.go",
		"t.sheddable += n\n", "t.sheddable++\n"},
	{"a window does not have its own beginning", "sim/window.go",
		"r.times[r.first[w]] <= now-spansUS[w]", "r.times[r.first[w]] < now-spansUS[w]"},
	{"who reads one field refreshes no other", "sim/telemetry.go",
		"needs.Of(t.field) && s.now-*taken >= t.us", "s.now-*taken >= t.us"},
	{"turns go to whoever had none for longest", "policy/round_robin.go",
		"] = r.turn\n", "] = 1\n"},
	{"tenants leave flow control in turn", "policy/flow.go",
		"f.turn = i + 1\n", "f.turn = i\n"},
	{"a queue is full when somebody would have to wait", "sim/flow.go",
		"f.Len() > c.Capacity {", "f.Len() >= c.Capacity {"},
	{"a value is read on demand when it is old enough, by whomever it was read", "sim/flow.go",
		"v.Replicas[i].Stats.TakenUS[t.field]+t.us", "max(s.now, v.Replicas[i].Stats.TakenUS[t.field])+t.us"},
	{"the shadow learns where prompts go", "sim/stages.go",
		"\t\tshadow.Sent(chosen.Index, r.path, int(r.out.InputTokens))\n", ""},
	{"a report is known as soon as its lag is over", "sim/evictions.go",
		"r.reports[n].at <= s.now {", "r.reports[n].at < s.now {"},
	{"the last token of a prompt is never expected to be cached", "sim/limits.go",
		"((input - 1) / l.blockSize)", "(input / l.blockSize)"},
	// Sessions.
	{"a step waits for the last of those before it", "sim/sessions.go",
		"c.at, c.busy = max(c.at, at),", "c.at, c.busy = at,"},
	{"what follows an answer begins when the client has it", "sim/steps.go",
		"s.proceed(of, step, at, seen)", "s.proceed(of, step, at, stream.Micros(s.now))"},
	{"the places of a session's steps are behind each other", "sim/sessions.go",
		"v.position+int64(k))]", "v.position+int64(len(v.Steps)-1-k))]"},
	{"a session that waits for what the horizon cuts keeps nothing running", "sim/sessions.go",
		"\ts.open--\n\tif v.waits {\n\t\treturn nil\n\t}\n", "\tif v.waits {\n\t\treturn nil\n\t}\n\ts.open--\n"},
	// The other switches.
	{"a full reservation counts all tokens", "engine/step.go",
		"room = tokens\n", "room = cached + n\n"},
	{"there is no watermark where nothing runs", "engine/step.go",
		"if e.Running() > 0 {\n\t\t\tspare", "{\n\t\t\tspare"},
	{"a window's sum does not grow with a sequence that fills it", "engine/window.go",
		"\tw.below -= n\n\tw.sum -= n * (w.size - tick)\n\tw.full += n\n",
		"\tif n > 1 {\n\t\tw.below -= n\n\t\tw.sum -= n * (w.size - tick)\n\t\tw.full += n\n\t}\n"},
	{"a window's blocks stop growing when it is full", "kv/window.go",
		"w.growing[tick%w.blockSize] -= w.leaving[at]", "w.growing[tick%w.blockSize] -= w.leaving[at] / 2"},
	{"a window's blocks are freed first", "kv/cache.go",
		"\tc.freeLoose(q.extra)\n\tloose := q.blocks - q.hashed\n",
		"\tdefer c.freeLoose(q.extra)\n\tloose := q.blocks - q.hashed\n"},
	{"a chunk's tokens see no further than the window", "engine/window.go",
		"(n-inside)*w.size", "(n-inside)*(w.size+1)"},
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
	"^(TestScenarios|TestStories)$", "^TestReferenceOnSessions$", "^(TestReference|TestReferenceOnFollowers)$",
}

// TestMutations breaks the rules one at a time and expects the comparison with the
// reference, or a story or scenario, to notice each.
func TestMutations(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("builds an engine with broken rules; run without -short and -race")
	}
	m := buildMutations(t, broken)
	if failed := runMutation(t, m.binary, -1, comparisons[0]); failed != nil {
		t.Fatalf("without a mutation the tests fail: %v", failed)
	}
	for i, b := range broken {
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
			failed := runMutation(t, binary, i, comparisons...)
			if failed == nil {
				t.Fatalf("the tests pass without the rule")
			}
			t.Logf("caught by %v", failed)
		})
	}
}
