// Package filter compiles conditions on records: expressions over what a record
// has on the wire, by the same names.
//
// A number or flag that a record does not have (ttft_ms of a request that was
// rejected) is neither equal, nor greater, nor less than anything, nor true or
// false: as with NULL in SQL, what is computed from it is as unknown, && and ||
// decide without it where they can, and a filter keeps a record only where it
// is true. So ttft_ms > 200 and !(ttft_ms > 200) both drop a rejected request,
// and state == "rejected" || ttft_ms > 200 keeps it. A text that a record does
// not have is "".
package filter

import (
	"blis/pkg/expr"
	"blis/pkg/stream"
)

// CompileOutcome compiles a condition on outcomes, whose fields it calls by the
// names in OutcomeFields. Errors begin with line:column of src. The filter is not
// to be called by two goroutines at once; its own errors are those that only a
// value shows, such as double(id) of an id that is no number.
func CompileOutcome(src string) (func(*stream.Outcome) (bool, error), error) {
	return compile(src, outcomeFields)
}

// CompileRequest is CompileOutcome for requests and RequestFields.
func CompileRequest(src string) (func(*stream.Request) (bool, error), error) {
	return compile(src, requestFields)
}

func compile[T any](src string, fields []expr.Field[T]) (func(*T) (bool, error), error) {
	e, err := expr.Compile(src, fields, expr.Flag)
	if err != nil {
		return nil, err
	}
	return e.Flag, nil
}
