package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blis/pkg/stream"
)

// interruptGrace is how long a tool may take after a signal to complete what it has written. It may be blocked
// for ever: in opening a FIFO, or in writing to a pipe that no process reads.
const interruptGrace = 500 * time.Millisecond

// allowPaths is the variable that stands for --allow-paths.
const allowPaths = "BLIS_ALLOW_PATHS"

// interrupted is the cause of a context that a signal canceled.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return i.signal.String() }

// interruptCode is the exit code after a signal, as shells have it.
func interruptCode(ctx context.Context) int {
	i := interrupted{syscall.SIGINT}
	errors.As(context.Cause(ctx), &i)
	return 128 + int(i.signal)
}

// Main runs the tool, whose main.go has the text source, on the process's arguments and standard streams and
// returns the exit code. A signal ends the tool after the grace at the latest; a second one ends it at once.
func (t Tool) Main(source string) int {
	delayGarbageCollection()
	t.source = source
	if os.Getenv(allowPaths) == "" { // kong reads an empty variable as a value
		os.Unsetenv(allowPaths)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A write to a closed stdout is an error, so that a call that failed ends with its own message.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ended := make(chan int, 1)
	go func() { ended <- t.run(ctx, os.Args[1:], standardStreams{os.Stdin, os.Stdout, os.Stderr}) }()
	select {
	case code := <-ended:
		return code
	case s := <-signals:
		cancel(interrupted{s.(syscall.Signal)})
	}
	select {
	case code := <-ended:
		return code
	case <-signals:
	case <-time.After(interruptGrace):
	}
	stream.RemoveTemporaries()
	return interruptCode(ctx)
}
