// Package cli runs the tools as processes: it parses command lines, opens and
// closes files, turns signals into cancelled contexts and errors into messages
// and exit codes. What a tool does stands in the tool's own package.
//
// Exit codes: 0 ok; 1 the data or the input and output failed; 2 the call was
// wrong, and nothing was read or written; 130 interrupted (SIGINT, SIGTERM);
// 141 the reader of stdout went away (as for any program that dies of SIGPIPE).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"blis/pkg/summarize"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitDiffers     = 1
	exitWrongCall   = 2
	exitInterrupted = 128 + int(syscall.SIGINT)
	exitBrokenPipe  = 128 + int(syscall.SIGPIPE)
)

// Std is the three standard streams of a process.
type Std struct {
	In       io.Reader
	Out, Err io.Writer
}

// Tool is one program of the toolkit.
type Tool struct {
	name, about string
	// stream is the kind of stream that the tool writes, as headers name it;
	// "" if its product is no stream of records.
	stream string
	// tables says that the product can be tables of the stream, too.
	tables bool
	// trouble is the exit code where the data or the input and output failed; 0 is 1.
	trouble int
	// words are what the tags of its flags name as ${WORD}: lists of choices that a
	// table has.
	words map[string]string
	// command returns a command line to be filled: a pointer to a struct with
	// kong tags that embeds common.
	command func() command
}

// command is the parsed command line of one call.
type command interface {
	options() *common
	// input names what the call reads: a file, "-" for stdin, "" for nothing.
	input() string
	// document says that the call writes a text for people, and no stream.
	document() bool
	// plain reports whether the call asks for an uncompressed stream.
	plain() bool
	run(ctx context.Context, j job) error
}

// job is what a command runs on.
type job struct {
	in  io.Reader
	out io.Writer
	// stdin is that of the process, for who reads several inputs.
	stdin io.Reader
	// plain says that a stream is to be written uncompressed.
	plain bool
	// color says that the product goes to a terminal.
	color bool
	// warn tells the user what is odd but no error.
	warn func(string)
	// progress shows how far the run has come; nil where nobody looks.
	progress func(string)
}

// common is the part of the command line that all tools share.
type common struct {
	Output  string      `short:"o" placeholder:"FILE" help:"Write to FILE instead of stdout. FILE appears only when it is complete."`
	Help    helpFlag    `short:"h" help:"Show this help and exit."`
	Version versionFlag `help:"Show version, revision and schema versions, and exit."`

	// given are the flags that the call names.
	given []string
}

// What holds for a tool that does not say otherwise.
func (c *common) options() *common { return c }

func (c *common) document() bool { return false }
func (c *common) input() string  { return "" }
func (c *common) plain() bool    { return false }

// wrongCall is a mistake in the command line that shows only after parsing.
type wrongCall struct{ msg string }

func (w wrongCall) Error() string { return w.msg }

// errShown ends a call that asked only for help or version and has got it.
var errShown = errors.New("shown")

// helpFlag prints the help text.
type helpFlag bool

// BeforeReset is called by kong where the flag is given.
func (helpFlag) BeforeReset(c *kong.Context) error {
	if err := c.PrintUsage(false); err != nil {
		return err
	}
	return errShown
}

// Main runs the tool on the process's arguments and standard streams and
// returns the exit code.
func (t Tool) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	return t.run(ctx, os.Args[1:], Std{os.Stdin, os.Stdout, os.Stderr})
}

// run is one call of the tool. It touches nothing of the process but the files
// that args name.
func (t Tool) run(ctx context.Context, args []string, std Std) int {
	cmd := t.command()
	err := t.parse(cmd, args, std)
	if err == nil {
		err = t.do(ctx, cmd, std)
	}
	return t.report(ctx, err, std.Err)
}

// parser makes the parser of cmd.
func (t Tool) parser(cmd command, std Std) *kong.Kong {
	p, err := kong.New(cmd, kong.Name(t.name), kong.Description(t.about),
		kong.Writers(std.Out, std.Err), kong.NoDefaultHelp(), kong.Vars(t.words), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}))
	if err != nil {
		panic("cli: " + t.name + ": " + err.Error())
	}
	return p
}

// parse fills cmd from args.
func (t Tool) parse(cmd command, args []string, std Std) error {
	call, err := t.parser(cmd, std).Parse(args)
	if err == nil {
		cmd.options().given, err = givenOnce(call)
	}
	if c, ok := cmd.(interface{ checkGiven() error }); ok && err == nil {
		err = c.checkGiven()
	}
	if err != nil && !errors.Is(err, errShown) {
		if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-#") }); i >= 0 && !slices.Contains(args[:i], "--") {
			err = fmt.Errorf("%s looks like a flag; a run of those on stdin is named after --: %s -- %[1]s", args[i], t.name)
		}
		return wrongCall{fmt.Sprintf("%s; see %s --help", err, t.name)}
	}
	return err
}

// givenOnce lists the flags of a call, and refuses one that is given twice and has
// one value: which of them was meant is not known.
func givenOnce(call *kong.Context) (given []string, err error) {
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

// do runs a parsed command between its input and its output.
func (t Tool) do(ctx context.Context, cmd command, std Std) (err error) {
	name := cmd.input()
	if name == "-" && isTerminal(std.In) {
		return wrongCall{fmt.Sprintf("stdin is a terminal: name a file or connect a pipe; see %s --help", t.name)}
	}
	in, err := openInput(ctx, name, std.In)
	if err != nil {
		return err
	}
	defer in.Close()
	out, plain, err := t.openOutput(cmd.options().Output, cmd.plain(), std.Out)
	if err != nil {
		return err
	}
	show := newProgress(t.name, std.Err)
	defer show.clear()
	if cmd.document() {
		t.stream = "" // nobody waits for one
	}
	err = cmd.run(ctx, job{in: in, out: out, stdin: std.In, plain: plain, progress: show.hook(),
		color: cmd.options().Output == "" && isTerminal(std.Out),
		warn:  func(msg string) { show.clear(); t.say(std.Err, "warning: "+msg) }})
	var told summarize.Reported
	if err != nil && err != errDiffers && !errors.As(err, &told) {
		return errors.Join(err, out.abandon(t, err))
	}
	if failed := out.commit(); failed != nil {
		return failed
	}
	return err
}

// report turns err into a message on stderr and an exit code. An interrupted
// run and a reader that left end quietly.
func (t Tool) report(ctx context.Context, err error, stderr io.Writer) int {
	var call wrongCall
	switch {
	case err == nil || errors.Is(err, errShown):
		return exitOK
	case errors.As(err, &call):
		t.say(stderr, call.msg)
		return exitWrongCall
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitBrokenPipe
	case err == errDiffers:
		return exitDiffers
	}
	t.say(stderr, err.Error())
	return max(t.trouble, exitFailed)
}

// say writes each line of msg to stderr under the tool's name.
func (t Tool) say(stderr io.Writer, msg string) {
	for line := range strings.Lines(msg) {
		fmt.Fprintf(stderr, "%s: %s\n", t.name, strings.TrimSuffix(line, "\n"))
	}
}
