package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseStory reads a cluster and the requests that arrive at it, one command per
// line; empty lines and lines that begin with # are skipped:
//
//	cluster key=value…   may take several lines, before the arrivals
//	scale key=value…     an auto-scaler, may take several lines
//	scale_prefill …      that of the prefill pool
//	pools key=value…     a prefill pool, may take several lines; it is like the cluster so far but for these keys
//	encode key=value…    encode replicas, may take several lines, after an encoder of the cluster and before pools
//	flow                 flow control, with the defaults of a file
//	failures key=value…  how replicas that fail come back, and health checks
//	fail at=1000 for=500 replica=1 inflight=redirect
//	arrive id=a at=0 in=512 out=3 prompt=sys:60,doc:40 deadline=90000
//
// Keys of cluster with their defaults: replicas=1, ranks=1 (data_parallel_size; replicas counts all ranks),
// lockstep=on, external=off (data_parallel_external_lb), sync=16 (dp_sync_interval),
// seqs=256 (max_num_seqs), budget=2048 (max_num_batched_tokens), block=16
// (block_size), blocks=1000 (num_gpu_blocks without the null block), free_order=append,
// chunked=on, caching=on, threshold=0 (long_prefill_token_threshold), model_len=0, async=off,
// prefill_interval=0 (prefill_schedule_interval),
// scheduler=fcfs, preemption=last-in, snapshot=0 (µs, 0 is always),
// reserve=off (reserve_full_sequence), watermark=0, window=0, alpha=0,0,0,
// beta=… (three or four numbers, required), admission=0 and
// host=blocks:bytes of a block:min_load_blocks (default none), load=µs:gb_per_s, store=µs:gb_per_s,
// storage=blocks[:shared], storage_load=µs:gb_per_s, storage_store=µs:gb_per_s,
// storage_mode=write-through or on-eviction (a storage below the host),
// encoder=budget:cache:µs of an item:µs of a token (default none),
// routing_latency=0 (µs), routing=round-robin, scorers=prefix-affinity:3,queue-depth:2
// (default none), shadow=31250 and horizon=… (µs, default none). Those of scale are in story_scaling.go, those of
// failures and fail in story_failures.go, those of encode in encode_pool.go. Of arrive,
// prompt (a segment such as x:60:image is one), deadline, stop=eos (see Request.EOS), priority=0, predicted=0, ttft (a
// target in ms), retry_on=timed_out,failed and backoff=100,200 (µs) are optional.
//
// A story in a file is one datadriven directive, run, whose input is this text
// and whose output is that of Result.Text:
//
//	# The arithmetic.
//	run steps
//	cluster …
//	arrive …
//	----
//	…
func ParseStory(text string) (Config, []Request, error) {
	c := Config{
		Replicas: 1, MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, BlockSize: 16, NumBlocks: 1001,
		Chunked: true, PrefixCaching: true,
		Routing: "round-robin", ShadowBlocks: defaultShadowBlocks, HorizonUS: Never,
	}
	var requests []Request
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		r := Request{DeadlineUS: Never}
		failing := Failure{ForUS: Never}
		if c.Failures == nil && (words[0] == "failures" || words[0] == "fail") {
			c.Failures = defaultFailures()
		}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			var err error
			switch words[0] {
			case "cluster":
				err = c.set(key, value)
			case "pools":
				if c.Disaggregation == nil {
					c.Disaggregation = &Disaggregation{Pool: c, Decider: "always"}
				}
				err = c.Disaggregation.set(key, value)
			case "encode":
				if c.EncodePool == nil {
					c.EncodePool = &EncodePool{Replicas: 1, MaxSeqs: c.MaxNumSeqs, Budget: c.Encoder.Budget,
						Cache: c.Encoder.Cache, ItemUS: c.Encoder.ItemUS, TokenUS: c.Encoder.TokenUS}
				}
				err = c.EncodePool.set(key, value)
			case "scale":
				if c.Scaling == nil {
					c.Scaling = defaultScaling()
				}
				err = c.Scaling.set(key, value)
			case "scale_prefill":
				if c.Disaggregation.Pool.Scaling == nil {
					c.Disaggregation.Pool.Scaling = defaultScaling()
				}
				err = c.Disaggregation.Pool.Scaling.set(key, value)
			case "failures":
				err = c.Failures.set(key, value)
			case "fail":
				err = failing.set(key, value)
			case "arrive":
				err = r.set(key, value)
			default:
				err = fmt.Errorf("have cluster, pools, encode, scale, scale_prefill, flow, failures, fail, arrive")
			}
			if err != nil {
				return c, nil, fmt.Errorf("story line %d: %s %s: %w", i+1, words[0], word, err)
			}
		}
		if c.Scaling != nil && len(c.Scaling.Fleet) > 0 {
			c.Replicas = 0
			for _, m := range c.Scaling.Fleet {
				c.Replicas += m.Start
			}
		}
		switch words[0] {
		case "flow":
			c.Flow = &Flow{Order: "fifo", Fairness: "none", Saturation: 1}
		case "arrive":
			requests = append(requests, r)
		case "fail":
			c.Failures.Events = append(c.Failures.Events, failing)
		}
	}
	if err := check(c, requests); err != nil {
		return c, nil, fmt.Errorf("story: %w", err)
	}
	return c, requests, nil
}

// parseGroups reads KV cache groups, such as full:16,state:16,window:16:128,chunk:16:8192: the size of a block and of
// the window or the chunk.
func parseGroups(value string) ([]Group, error) {
	var groups []Group
	for _, word := range strings.Split(value, ",") {
		kind, sizes, _ := strings.Cut(word, ":")
		block, size, _ := strings.Cut(sizes, ":")
		var g Group
		var err error
		g.State = kind == "state"
		if g.BlockSize, err = strconv.Atoi(block); err != nil {
			return nil, err
		}
		switch kind {
		case "window":
			g.Window, err = strconv.Atoi(size)
		case "chunk":
			g.Chunk, err = strconv.Atoi(size)
		default:
			err = oneOf(kind, "full", "window", "chunk", "state")
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// parseStates reads the rules for recurrent states, such as blocks,checkpoint,next-step,last: where chunks end, and
// the other rules if they are on.
func parseStates(value string) (s States, err error) {
	chunks, rest, _ := strings.Cut(value, ",")
	err = oneOf(chunks, "prompts", "recomputed", "shared", "blocks", "resumable")
	s.Chunks = chunks
	for rest != "" && err == nil {
		var word string
		word, rest, _ = strings.Cut(rest, ",")
		switch word {
		case "checkpoint":
			s.Checkpoint = true
		case "next-step":
			s.NextStep = true
		case "last":
			s.LastOnly = true
		default:
			err = oneOf(word, "checkpoint", "next-step", "last")
		}
	}
	return s, err
}

// set sets a key of the cluster command.
func (c *Config) set(key, value string) (err error) {
	switch key {
	case "replicas":
		c.Replicas, err = strconv.Atoi(value)
	case "seqs":
		c.MaxNumSeqs, err = strconv.Atoi(value)
	case "ranks", "sync", "external", "lockstep":
		err = c.setRanks(key, value)
	case "prefill_interval":
		c.PrefillInterval, err = strconv.Atoi(value)
	case "budget":
		c.MaxNumBatchedTokens, err = strconv.Atoi(value)
	case "block":
		c.BlockSize, err = strconv.Atoi(value)
	case "blocks":
		c.NumBlocks, err = strconv.Atoi(value)
		c.NumBlocks++
	case "free_order":
		c.UnhashedFirst, err = value == "unhashed-first", oneOf(value, "append", "unhashed-first")
	case "groups":
		c.Groups, err = parseGroups(value)
	case "retention":
		c.Sparse = true
		c.Interval, err = strconv.Atoi(value)
	case "states":
		c.States, err = parseStates(value)
	case "hashed_blocks":
		c.HashAll, err = value == "all", oneOf(value, "all", "reachable")
	case "window_release":
		c.KeepUntilComputed, err = value == "computed", oneOf(value, "scheduled", "computed")
	case "window_reserve":
		c.ReserveWindow, err = value == "window", oneOf(value, "all", "window")
	case "chunked":
		c.Chunked, err = onOff(value)
	case "caching":
		c.PrefixCaching, err = onOff(value)
	case "async":
		c.Async, err = onOff(value)
	case "reserve":
		c.ReserveFull, err = onOff(value)
	case "watermark":
		c.Watermark, err = strconv.ParseFloat(value, 64)
	case "window":
		c.Window, err = strconv.Atoi(value)
	case "threshold":
		c.LongPrefillThreshold, err = strconv.Atoi(value)
	case "model_len":
		c.MaxModelLen, err = strconv.Atoi(value)
	case "alpha":
		var alpha []float64
		alpha, err = numbers(value)
		if err == nil && len(alpha) != 3 && len(alpha) != 4 {
			err = fmt.Errorf("want three or four numbers")
		}
		copy(c.Alpha[:], alpha)
	case "beta":
		c.Beta, err = numbers(value)
	case "admission":
		c.AdmissionLatencyUS, err = strconv.ParseInt(value, 10, 64)
	case "routing_latency":
		c.RoutingLatencyUS, err = strconv.ParseInt(value, 10, 64)
	case "routing":
		c.Routing = value
	case "scheduler":
		c.Scheduler = value
	case "preemption":
		c.Preemption = value
	case "snapshot":
		c.SnapshotUS, err = strconv.ParseInt(value, 10, 64)
	case "scorers":
		for name, weight := range pairs(value) {
			s := Scorer{Name: name}
			if s.Weight, err = strconv.ParseFloat(weight, 64); err != nil {
				break
			}
			c.Scorers = append(c.Scorers, s)
		}
	case "shadow":
		c.ShadowBlocks, err = strconv.Atoi(value)
	case "encoder":
		var x []float64
		if x, err = numbers(strings.ReplaceAll(value, ":", ",")); err == nil && len(x) != 4 {
			err = fmt.Errorf("want budget:cache:time of an item:time of a token")
		}
		if err == nil {
			c.Encoder = &Encoder{Budget: int(x[0]), Cache: int(x[1]), ItemUS: x[2], TokenUS: x[3]}
		}
	case "horizon":
		c.HorizonUS, err = strconv.ParseInt(value, 10, 64)
	case "storage", "storage_load", "storage_store", "storage_mode", "host", "load", "store", "eviction", "offers",
		"offload":
		err = c.setHost(key, value)
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

// set sets a key of the arrive command.
func (r *Request) set(key, value string) (err error) {
	switch key {
	case "id":
		r.ID = value
	case "at":
		r.ArrivalUS, err = strconv.ParseInt(value, 10, 64)
	case "in":
		r.Input, err = strconv.Atoi(value)
	case "out":
		r.Output, err = strconv.Atoi(value)
	case "prompt":
		for id, tokens := range pairs(value) {
			s := Segment{ID: id}
			tokens, s.Media = strings.CutSuffix(tokens, ":image")
			if s.Tokens, err = strconv.Atoi(tokens); err != nil {
				break
			}
			r.Prompt = append(r.Prompt, s)
		}
	case "stop":
		r.EOS, err = true, oneOf(value, "eos")
	case "priority":
		r.Priority, err = strconv.ParseFloat(value, 64)
	case "predicted":
		r.Predicted, err = strconv.Atoi(value)
	case "ttft":
		r.TTFTTargetMS, err = strconv.ParseFloat(value, 64)
	case "deadline":
		r.DeadlineUS, err = strconv.ParseInt(value, 10, 64)
	case "retry_on":
		r.On = strings.Split(value, ",")
	case "backoff":
		var all []float64
		all, err = numbers(value)
		for _, us := range all {
			r.BackoffUS = append(r.BackoffUS, int64(us))
		}
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

func onOff(value string) (bool, error) {
	if value != "on" && value != "off" {
		return false, fmt.Errorf("want on or off")
	}
	return value == "on", nil
}

func oneOf(value string, values ...string) error {
	if !slices.Contains(values, value) {
		return fmt.Errorf("want one of %v", values)
	}
	return nil
}

func numbers(value string) ([]float64, error) {
	var list []float64
	for _, word := range strings.Split(value, ",") {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

// pairs ranges over "a:1,b:2", in order.
func pairs(value string) func(yield func(name, number string) bool) {
	return func(yield func(name, number string) bool) {
		for _, word := range strings.Split(value, ",") {
			name, number, _ := strings.Cut(word, ":")
			if !yield(name, number) {
				return
			}
		}
	}
}

// Text formats the result for stories: one line per request without the fields that do not apply.
// show adds "tokens" (the engine time of each token), "steps" (every step of every replica),
// "sums" (the batch sums of each step), "transfers", "embeddings" (transfers from encode replicas) and "fleet" (the
// looks of the auto-scaler and the states of replicas).
func (r Result) Text(show ...string) string {
	var text strings.Builder
	for _, o := range r.Outcomes {
		text.WriteString(o.text() + "\n")
	}
	for _, what := range show {
		switch what {
		case "tokens":
			for _, o := range r.Outcomes {
				fmt.Fprintf(&text, "tokens of %s: %v\n", o.ID, o.TokensUS)
			}
		case "steps":
			for replica, steps := range r.Steps {
				for _, s := range steps {
					text.WriteString(s.text(replica) + "\n")
				}
			}
		case "transfers":
			for replica, list := range r.Transfers {
				for _, t := range list {
					text.WriteString(t.text(replica) + "\n")
				}
			}
		case "embeddings":
			for _, t := range r.Embeddings {
				fmt.Fprintf(&text, "embeddings of %d tokens from encode replica %d to replica %d for %s: asked=%d "+
					"ended=%d\n", t.Tokens, t.From, t.To, t.Request, t.AskedUS, t.EndedUS)
			}
		case "fleet":
			for _, line := range r.Fleet {
				text.WriteString(line + "\n")
			}
		case "sums":
			for replica, steps := range r.Steps {
				for _, s := range steps {
					fmt.Fprintf(&text, "replica %d: %d: context=%d chunks=%d past=%d pairs=%d, in windows %d %d %d\n",
						replica, s.StartUS, s.Context, s.Chunks, s.PriorContext, s.Pairs, s.WindowContext,
						s.WindowPriorContext, s.WindowPairs)
				}
			}
		}
	}
	return text.String()
}

func (o Outcome) text() string {
	line := o.ID + " " + o.State
	if o.Reason != "" {
		line += " (" + o.Reason + ")"
	}
	if o.RetryOf != "" {
		line += fmt.Sprintf(" retry of %s after %d", o.RetryOf, o.RetryUS)
	}
	for _, time := range []struct {
		name string
		us   int64
	}{
		{"admitted", o.AdmittedUS}, {"routed", o.RoutedUS}, {"prefill replica", int64(o.PrefillReplica)},
		{"enqueued", o.PrefillEnqueuedUS}, {"scheduled", o.PrefillScheduledUS}, {"prefilled", o.PrefilledUS},
		{"transferred", o.TransferredUS}, {"encoded", o.EncodedUS}, {"enqueued", o.EnqueuedUS},
		{"embeddings", o.EmbeddingsUS},
		{"scheduled", o.ScheduledUS}, {"first", o.FirstTokenUS}, {"completed", o.CompletedUS},
		{"replica", int64(o.Replica)},
	} {
		if time.us != Never {
			line += fmt.Sprintf(" %s=%d", time.name, time.us)
		}
	}
	for _, count := range []struct {
		name string
		n    int
	}{
		{"generated", o.Generated}, {"cached", o.Cached}, {"loaded", o.Loaded}, {"promoted", o.FromStorage},
		{"blocks", o.TransferBlocks},
		{"cached again", o.DecodeCached}, {"expected", o.ExpectedCached},
		{"preempted", o.Preemptions},
		{"redirected", o.Redirects},
	} {
		if count.n > 0 {
			line += fmt.Sprintf(" %s=%d", count.name, count.n)
		}
	}
	return line
}

func (s Step) text(replica int) string {
	line := fmt.Sprintf("replica %d: %d..%d prefill=%d decode=%d used=%d running=%d waiting=%d",
		replica, s.StartUS, s.EndUS, s.Prefill, s.Decode, s.UsedBlocks, s.Running, s.Waiting)
	if s.Preempted > 0 {
		line += fmt.Sprintf(" preempted=%d", s.Preempted)
	}
	return line
}
