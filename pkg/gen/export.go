package gen

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// Exports are the files that --export writes for real load generators. Their values write the request lines.
var Exports = registry.Table[exporter]{
	{Name: "aiperf", Doc: "AIPerf --custom-dataset-type mooncake_trace --isl-block-size 16",
		Value: exporter{line: hashedLine, ms: 1, blockSize: 16, timed: true, prefixes: true}},
	{Name: "guidellm", Doc: "GuideLLM --data kind=mooncake,hash_id_block_size=16 --profile kind=replay",
		Value: exporter{line: hashedLine, ms: 1e-3, blockSize: 16, timed: true, prefixes: true}},
	{Name: "mooncake", Doc: "Mooncake's trace, with blocks of 512 tokens or of --block-size",
		Value: exporter{line: hashedLine, ms: 1, blockSize: 512, timed: true, prefixes: true}},
	{Name: "vllm-bench", Doc: "vllm bench serve --dataset-name custom: prompts as text, without arrival times",
		Value: exporter{line: textLine, prefixes: true}},
	{Name: "inference-perf", Doc: "inference-perf, load type trace_replay: AzurePublicDataset, without prefixes",
		Value: exporter{line: azureLine, head: "TIMESTAMP,ContextTokens,GeneratedTokens\n", timed: true}},
}

// exporter writes requests in the form of a load generator.
type exporter struct {
	// line appends the line of a request.
	line func(w *exportWriter, r *stream.Request) ([]byte, error)
	// head is the first line.
	head string
	// ms is a millisecond in the unit of its timestamps.
	ms float64
	// blockSize is the number of tokens of a hash id.
	blockSize int64
	// timed files have arrival times, and those with prefixes say which prompts begin alike.
	timed, prefixes bool
}

// exportWriter is the state of an export.
type exportWriter struct {
	exporter
	// blocks are the hash ids by what they contain.
	blocks map[blockKey]int64
}

// blockKey is a block by the id of the block before it and its content.
type blockKey struct {
	parent  int64
	content string
}

// inexpressible is what files for load generators cannot express, and what then becomes of it. prefixes: only those
// without prefixes cannot.
var inexpressible = []struct {
	what, result string
	prefixes     bool
	has          func(*stream.Request) bool
}{
	{what: "requests have a deadline or retries",
		has: func(r *stream.Request) bool { return r.DeadlineUS != stream.Never || r.Retry != nil }},
	{what: "outputs end by an end-of-sequence token", has: func(r *stream.Request) bool { return r.Stop != "" }},
	{what: "requests have a draft_acceptance", has: func(r *stream.Request) bool { return r.DraftAcceptance != nil }},
	{what: "requests have images or other media", result: ": they are text",
		has: func(r *stream.Request) bool {
			return slices.ContainsFunc(r.Prompt, func(s stream.Segment) bool { return s.Media != "" })
		}},
	{what: "requests have a LoRA adapter", has: func(r *stream.Request) bool { return r.Adapter != "" }},
	{what: "requests have a grammar", has: func(r *stream.Request) bool { return r.Grammar != "" }},
	{what: "requests have a priority", has: func(r *stream.Request) bool { return r.Priority != 0 }},
	{what: "prompts have segments", result: ": no prefixes are shared", prefixes: true,
		has: func(r *stream.Request) bool { return len(r.Prompt) > 0 }},
}

// export writes the requests of src for a load generator.
func export(ctx context.Context, out io.Writer, src source, o Options) error {
	form, err := Exports.Get("export", o.Export)
	if err != nil {
		return err
	}
	if o.BlockSize != 0 && form.blockSize != 0 && len(o.Import) == 0 {
		form.blockSize = int64(o.BlockSize)
	}
	w := &exportWriter{exporter: form, blocks: map[blockKey]int64{}}
	text := bufio.NewWriter(out)
	text.WriteString(form.head) // an error is repeated by Flush
	requests, lost := 0, make([]int, len(inexpressible))
	err = forEachArrival(ctx, src, o, func(a *stream.Arrival) error {
		if !o.inShard(a) {
			return nil
		}
		if a.IsSession {
			return fmt.Errorf("session %s: --export writes only requests; the model calls of a session begin when "+
				"earlier ones end, which no file of arrival times contains", a.Session.ID)
		}
		r := &a.Request
		requests++
		for i, x := range inexpressible {
			if x.has(r) && !(x.prefixes && form.prefixes) {
				lost[i]++
			}
		}
		line, err := form.line(w, r)
		if err != nil {
			return err
		}
		_, err = text.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	o.warnUnusedSLO()
	for i, x := range inexpressible {
		if lost[i] > 0 {
			o.warn(fmt.Sprintf("%d of %d %s, which files of %s cannot express%s", lost[i], requests, x.what, o.Export,
				x.result))
		}
	}
	if !form.timed {
		o.warn(fmt.Sprintf("files of %s have no arrival times: it sends the prompts in this order, at its "+
			"--request-rate", o.Export))
	}
	return text.Flush()
}

// hashedLine writes lengths and the hash ids of the prompt's blocks. Two blocks have the same id if they and all
// blocks before them contain the same tokens.
func hashedLine(w *exportWriter, r *stream.Request) ([]byte, error) {
	row := struct {
		Timestamp    float64 `json:"timestamp"`
		InputLength  int64   `json:"input_length"`
		OutputLength int64   `json:"output_length"`
		HashIDs      []int64 `json:"hash_ids"`
	}{float64(r.ArrivalUS) / 1000 * w.ms, r.InputTokens, r.OutputTokens, w.hashIDs(r)}
	line, err := json.Marshal(row)
	return append(line, '\n'), err
}

// hashIDs are the ids of the prompt's blocks; the last one may be partial.
func (w *exportWriter) hashIDs(r *stream.Request) (ids []int64) {
	parent, content, filled := int64(-1), strings.Builder{}, int64(0)
	for _, s := range segments(r) {
		for at := int64(0); at < s.tokens; {
			n := min(s.tokens-at, w.blockSize-filled)
			fmt.Fprintf(&content, "%q %d %d,", s.id, at, n)
			at, filled = at+n, filled+n
			if filled == w.blockSize {
				parent = w.blockID(parent, content.String())
				ids, filled = append(ids, parent), 0
				content.Reset()
			}
		}
	}
	if filled > 0 {
		ids = append(ids, w.blockID(parent, content.String()))
	}
	return ids
}

// blockID returns the id of a block; new blocks are numbered in order.
func (w *exportWriter) blockID(parent int64, content string) int64 {
	key := blockKey{parent, content}
	id, known := w.blocks[key]
	if !known {
		id = int64(len(w.blocks))
		w.blocks[key] = id
	}
	return id
}

// segment is a part of a prompt.
type segment struct {
	id     string
	tokens int64
}

// segments are the parts of the whole prompt; the tokens that are unique to a request have its name.
func segments(r *stream.Request) (all []segment) {
	left := r.InputTokens
	for _, s := range r.Prompt {
		all = append(all, segment{"s " + s.ID, min(s.Tokens, left)})
		left -= min(s.Tokens, left)
	}
	if left > 0 {
		all = append(all, segment{"r " + r.ID, left})
	}
	return all
}

// textLine writes the prompt as text: a common English word for each token. Byte-pair encodings have a token for
// each such word with the space before it.
func textLine(_ *exportWriter, r *stream.Request) ([]byte, error) {
	var text []byte
	for _, s := range segments(r) {
		for at := range s.tokens {
			hash := fnv.New64a()
			hash.Write(strconv.AppendInt([]byte(s.id+" "), at, 10))
			text = append(append(text, ' '), promptWords[hash.Sum64()%uint64(len(promptWords))]...)
		}
	}
	line, err := json.Marshal(struct {
		Prompt       string `json:"prompt"`
		OutputTokens int64  `json:"output_tokens"`
	}{string(text), r.OutputTokens})
	return append(line, '\n'), err
}

// promptWords are words of a token each in the vocabularies of GPT, Llama and Qwen.
var promptWords = strings.Fields(`about after again air all along also always and another any around art as at away back
bank base be because been before best better big black book both boy but by call can car case change child city
class close come could country day did do door down each early earth eat end even every eye face family far fast
father few field find fire first fish five food for form four free friend from full game gave get girl give go gold
good got great green group had half hand hard has have he head hear heart help her here high him his hold home hot
hour house how idea if in into is it job just keep kind king knew know land large last late law learn leave left
less let life light like line list live local long look made main make man many mark may mean men might mind money
month more most mother move much music must my name near need never new next night no north not note now number of
off often old on once one only open or order other our out over own page paper part pass past people place plan
play point power press put question read real red rest right river road rock room run said same saw say school sea
second see seem self set she short should show side since sing sit six size small snow so some song soon south
space stand star start state step still stop story strong such sun sure table take talk team ten test than
that the their them then there these they thing think this those thought three through time to too took top
town tree true try turn two under unit until up upon us use very voice walk want war warm was watch water way we
week well went were west what wheel when where which while white who whole why will wind with wood word work world
would write year yes yet you young your`)

// azureOrigin is when exported Azure traces begin.
var azureOrigin = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// azureLine writes a line of AzurePublicDataset.
func azureLine(_ *exportWriter, r *stream.Request) ([]byte, error) {
	at := azureOrigin.Add(time.Duration(r.ArrivalUS) * time.Microsecond).Format("2006-01-02 15:04:05.000000")
	return fmt.Appendf(nil, "%s,%d,%d\n", at, r.InputTokens, r.OutputTokens), nil
}
