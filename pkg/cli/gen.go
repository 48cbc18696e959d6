package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"blis/pkg/gen"
	"blis/pkg/stream"
	"blis/pkg/trace"
)

// Gen is blis-gen.
var Gen = Tool{
	name:   "blis-gen",
	about:  "Write a workload of requests sorted by arrival, from a spec, a built-in scenario or a public trace.",
	stream: stream.StreamWorkload,
	vars: map[string]string{"shardkeys": strings.Join(stream.ShardKeys, ","), "shardkey": stream.ShardKeys[0],
		"exports": strings.Join(gen.Exports.Names(), ","), "exported": strings.Join(gen.Exports.Names(), ", ")},
	examples: []usageExample{
		{"A workload of a built-in scenario", "blis-gen --scenario mixed-slo --requests 500 -o workload.jsonl.zst"},
		{"A public trace at twice its speed, as plain lines",
			"blis-gen --import mooncake:trace.jsonl --time-scale 0.5 --plain | head"},
	},
	choices: func() map[string][]string {
		var formats []string
		for _, name := range trace.Formats.Names() {
			formats = append(formats, name+":")
		}
		return map[string][]string{"scenarios": gen.Scenarios.Names(), "importers": formats}
	},
	command: func() command { return &genCommand{} },
}

type genCommand struct {
	gen.Options
	common
}

func (c *genCommand) writesDocument() bool { return c.List != "" || c.PrintSpec || c.Export != "" }

func (c *genCommand) input() string {
	if c.ReadsStdin() {
		return "-"
	}
	return ""
}

func (c *genCommand) plain() bool { return c.Plain }

// checkFlags rejects the value that means that a flag is not given.
func (c *genCommand) checkFlags() error {
	if slices.Contains(c.givenFlags, "output-tokens") && c.OutputTokens == 0 {
		return errors.New("--output-tokens must be above 0, is 0")
	}
	if slices.Contains(c.givenFlags, "shard-by") && !slices.Contains(c.givenFlags, "shard") {
		return errors.New("--shard-by has no effect without --shard")
	}
	if c.Export != "" && c.Plain {
		return errors.New("--plain has no effect with --export, whose files are never compressed")
	}
	return nil
}

func (c *genCommand) run(ctx context.Context, j stdio) error {
	o := c.Options
	o.Plain, o.Version, o.Warn, o.Progress = j.plain, stream.Version, j.warn, j.progress
	return gen.Run(ctx, j.in, j.out, o)
}
