// Package cli runs the tools as processes. It parses command lines, opens and closes
// files, turns signals into canceled contexts, and errors into messages and exit codes.
// Each tool's own package does the work.
//
// Exit codes: 0 ok; 1 the data or an input or output failed; 2 the command line was wrong
// and nothing was read or written; 129, 130 or 143 ended by SIGHUP, SIGINT or SIGTERM; 141 the reader of
// stdout closed it (as for any program that dies of SIGPIPE).
package cli

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"blis/pkg/cluster"
	"blis/pkg/gen"
	"blis/pkg/limits"
	"blis/pkg/summarize"
	"blis/pkg/sweep"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK         = 0
	exitFailed     = 1
	exitDiffers    = 1
	exitUsage      = 2
	exitBrokenPipe = 128 + int(syscall.SIGPIPE)
)

// standardStreams is the three standard streams of a process.
type standardStreams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Tool is one program of the toolkit.
type Tool struct {
	name, about string
	// stream is the kind of stream that the tool writes, as headers name it; empty if the
	// tool writes no records.
	stream string
	// tables is true if the tool can also write Parquet tables of the stream.
	tables bool
	// rows is true if the call itself writes a Parquet table.
	rows bool
	// failureCode is the exit code if the data or an input or output failed; 0 means 1.
	failureCode int
	// vars are what the tags of its flags name as ${WORD}: lists of choices that a table has.
	vars map[string]string
	// choices returns the lists that tags choices:"WORD" of its flags name, for completion; nil if there are none.
	choices func() map[string][]string
	// examples are commands that the help text shows.
	examples []usageExample
	// settings are the paths for --set of settings that are no flags, by the names that callers try as flags.
	settings map[string]string
	// advice says what to do instead of some other flags that callers try.
	advice map[string]string
	// source is the text of its main.go, whose package comment is the manual page.
	source string
	// command returns an empty command line: a pointer to a struct with kong tags that
	// embeds common.
	command func() command
}

// command is the parsed command line of one call.
type command interface {
	options() *common
	// input names the file to read: "-" for stdin, empty for none.
	input() string
	// writesDocument says that the call writes a text for people, and no stream.
	writesDocument() bool
	// plain is true if the call asks for an uncompressed stream.
	plain() bool
	run(ctx context.Context, j stdio) error
}

// stdio is the input and output of one command.
type stdio struct {
	in  io.Reader
	out io.Writer
	// stdin is that of the process, for commands that read several inputs.
	stdin io.Reader
	// plain is true if a stream must be written uncompressed.
	plain bool
	// color is true if out is a terminal, which is width columns wide; 0 is unknown.
	color bool
	width int
	// warn prints a warning.
	warn func(string)
	// progress shows how far the run is; nil if stderr is not a terminal.
	progress func(string)
}

// common is the part of the command line that all tools share.
type common struct {
	Output     string         `group:"Output:" short:"o" placeholder:"FILE" help:"Write to FILE instead of stdout. FILE appears only when complete."`
	Help       helpFlag       `group:"Help:" short:"h" help:"Show this help and exit."`
	HelpAll    helpAllFlag    `group:"Help:" help:"Show the help with all flags, and exit."`
	Version    versionFlag    `group:"Help:" help:"Show the version, revision and stream version, and exit."`
	Man        manFlag        `rare:"" group:"Help:" help:"Print the manual page for man(1) and exit."`
	Completion completionFlag `rare:"" group:"Help:" placeholder:"SHELL" help:"Print the completion script of a shell and exit: ${shellnames}."`

	// givenFlags are the flags on the command line.
	givenFlags []string
}

// Defaults that commands may override.
func (c *common) options() *common { return c }

func (c *common) writesDocument() bool { return false }
func (c *common) input() string        { return "" }
func (c *common) plain() bool          { return false }

// usageError is a mistake in the command line.
type usageError struct{ msg string }

func (w usageError) Error() string { return w.msg }

// reportedError is an error whose message was printed already. It has the exit code.
type reportedError struct{ code int }

func (r reportedError) Error() string { return fmt.Sprintf("exit code %d", r.code) }

// errHelpShown ends a call that asked only for help or the version.
var errHelpShown = errors.New("shown")

// helpFlag prints the help text.
type helpFlag bool

// BeforeReset is called by kong when the flag is given.
func (helpFlag) BeforeReset(c *kong.Context) error {
	if err := c.PrintUsage(false); err != nil {
		return err
	}
	return errHelpShown
}

// run runs the tool once. It uses no state of the process except the files named in args.
func (t Tool) run(ctx context.Context, args []string, std standardStreams) int {
	if slices.Equal(args, []string{"help"}) {
		if _, err := os.Stat("help"); err != nil { // no file of that name
			args = []string{"--help"}
		}
	}
	cmd := t.command()
	err := t.parse(cmd, args, std)
	if err == nil {
		err = t.do(ctx, cmd, std)
	}
	return t.report(ctx, err, std.Err)
}

// parser returns the command-line parser of cmd.
func (t Tool) parser(cmd command, std standardStreams) *kong.Kong {
	vars := kong.Vars{"shellnames": strings.Join(shells.Names(), ", ")}
	p, err := kong.New(cmd, kong.Name(t.name), kong.Description(t.about), kong.Writers(std.Out, std.Err),
		kong.NoDefaultHelp(), vars, kong.Vars(t.vars), kong.Help(t.printHelp), kong.Bind(t),
		kong.KindMapper(reflect.String, kong.MapperFunc(decodeText)),
		kong.TypeMapper(reflect.TypeFor[gen.Import](), kong.MapperFunc(decodeText)),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}))
	if err != nil {
		panic("cli: " + t.name + ": " + err.Error())
	}
	hideRare(p)
	return p
}

// decodeText sets a text to the bytes of an argument. Kong's own mappers replace those that are not UTF-8, which
// file names may have.
func decodeText(c *kong.DecodeContext, target reflect.Value) error {
	t, err := c.Scan.PopValue("string")
	if err != nil {
		return err
	}
	if own, ok := target.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return own.UnmarshalText([]byte(t.String()))
	}
	target.SetString(t.String())
	return nil
}

// parse fills cmd from args.
func (t Tool) parse(cmd command, args []string, std standardStreams) error {
	call, err := t.parser(cmd, std).Parse(args)
	if err == nil {
		err = checkOctal(call, args)
	}
	if err == nil {
		cmd.options().givenFlags, err = flagsOf(call)
	}
	if c, ok := cmd.(interface{ checkFlags() error }); ok && err == nil {
		err = c.checkFlags()
	}
	if err != nil && !errors.Is(err, errHelpShown) {
		if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-#") }); i >= 0 &&
			!slices.Contains(args[:i], "--") {
			err = fmt.Errorf("%s looks like a flag; to select a run from stdin, write it after --: %s -- %[1]s",
				args[i], t.name)
		}
		if rest, ok := strings.CutPrefix(err.Error(), "unknown flag --"); ok {
			name, _, _ := strings.Cut(rest, ",")
			if path := t.settingOf(name); path != "" {
				err = fmt.Errorf("unknown flag --%s; --set %s=VALUE sets it", name, path)
			} else if advice := t.advice[name]; advice != "" {
				err = fmt.Errorf("unknown flag --%s; %s", name, advice)
			}
		}
		return usageError{fmt.Sprintf("%s; see %s --help", err, t.name)}
	}
	return err
}

// settingOf is the path for --set of the setting that a caller tries as a flag: one of t.settings or, of the simulator,
// an argument of vllm serve. It is empty if there is none.
func (t Tool) settingOf(flag string) string {
	if path := t.settings[flag]; path != "" || t.settings == nil {
		return path
	}
	if field := strings.ReplaceAll(flag, "-", "_"); slices.Contains(cluster.EngineFields(), field) {
		return "deployments.main.engine." + field
	}
	return ""
}

// flagsOf lists the flags of a call. A flag with one value that is given twice is an
// error, because it is unclear which value counts.
func flagsOf(call *kong.Context) (given []string, err error) {
	for _, part := range call.Path {
		f := part.Flag
		if f == nil || slices.Contains(given, f.Name) && (f.IsBool() || f.IsCumulative()) {
			continue
		}
		if slices.Contains(given, f.Name) {
			return nil, fmt.Errorf("--%s is given twice", f.Name)
		}
		given = append(given, f.Name)
	}
	return given, nil
}

// checkOctal rejects integers with a leading zero, which kong reads as octal.
func checkOctal(call *kong.Context, args []string) error {
	for _, part := range call.Path {
		if part.Flag == nil || !part.Flag.Target.CanInt() && !part.Flag.Target.CanUint() {
			continue
		}
		for i, arg := range args {
			name, value, joined := strings.Cut(arg, "=")
			if !joined && i+1 < len(args) {
				value = args[i+1]
			}
			digits := strings.TrimLeft(value, "+-")
			octal := len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789") == ""
			if name == "--"+part.Flag.Name && octal {
				return fmt.Errorf("%s %s has a leading zero, which can mean octal; write %s", name, value,
					cmp.Or(strings.TrimLeft(digits, "0"), "0"))
			}
		}
	}
	return nil
}

// do runs a parsed command between its input and its output.
func (t Tool) do(ctx context.Context, cmd command, std standardStreams) (err error) {
	name := cmd.input()
	if name == "-" && isTerminal(std.In) {
		return usageError{fmt.Sprintf("stdin is a terminal: name a file or use a pipe; see %s --help", t.name)}
	}
	if out := cmd.options().Output; sameFile(name, out) {
		return usageError{fmt.Sprintf("-o %s is the input: name another file; see %s --help", out, t.name)}
	}
	show := newProgress(t.name, std.Err)
	defer show.clear()
	ctx = context.WithValue(ctx, progressKey{}, show)
	in, err := openInput(ctx, name, std.In)
	if err != nil {
		return err
	}
	defer in.Close()
	if cmd.writesDocument() {
		t.stream = "" // no tool reads the document as a stream
	}
	if c, ok := cmd.(interface{ writesRows() bool }); ok && c.writesRows() {
		t.rows = true
	}
	out, plain, err := t.openOutput(cmd.options().Output, cmd.plain(), std.Out)
	if err != nil {
		return err
	}
	if name := cmd.options().Output; (name == "" || name == "-") && mayBeClosed(std.Out) {
		t.printError(std.Err, "warning: stdout is closed, or is the null device opened also for reading: "+
			"the output is lost")
	}
	err = cmd.run(ctx, stdio{in: in, out: out, stdin: std.In, plain: plain, progress: show.hook(),
		color: cmd.options().Output == "" && isTerminal(std.Out), width: terminalWidth(std.Out),
		warn: func(msg string) { show.clear(); t.printError(std.Err, "warning: "+msg) }})
	_, reported := errors.AsType[summarize.Reported](err)
	_, failed := errors.AsType[sweep.AllFailed](err)
	if err != nil && err != errDiffers && !reported && !failed {
		// What failed comes before a failure to end the output, such as a closed stdout.
		show.clear()
		t.describeMistaken(err)
		shown := reportedError{t.report(ctx, err, std.Err)}
		if aborting := out.abort(t, err); aborting != nil {
			t.report(ctx, aborting, std.Err)
		}
		return shown
	}
	if committing := out.commit(); committing != nil {
		return committing
	}
	return err
}

// report turns err into a message on stderr and an exit code. An interrupt and a closed
// stdout end quietly.
func (t Tool) report(ctx context.Context, err error, stderr io.Writer) int {
	var call usageError
	var shown reportedError
	switch {
	case err == nil || errors.Is(err, errHelpShown):
		return exitOK
	case errors.As(err, &shown):
		return shown.code
	case errors.As(err, &call):
		t.printError(stderr, call.msg)
		return exitUsage
	case ctx.Err() != nil:
		return interruptCode(ctx)
	case errors.Is(err, syscall.EPIPE):
		return exitBrokenPipe
	case err == errDiffers:
		return exitDiffers
	}
	t.printError(stderr, err.Error())
	return max(t.failureCode, exitFailed)
}

// printError writes each line of msg to stderr after the tool's name.
func (t Tool) printError(stderr io.Writer, msg string) {
	for line := range strings.Lines(msg) {
		fmt.Fprintf(stderr, "%s: %s\n", t.name, limits.Shorten(strings.TrimSuffix(line, "\n")))
	}
}
