// Package filter compiles conditions on records: expressions over the fields of a
// record on the wire, by the same names.
//
// An absent number or flag (ttft_ms of a rejected request) behaves as NULL does in SQL: everything
// computed from it is unknown, && and || decide without it if they can, and a filter keeps a record
// only if its condition is true. So ttft_ms > 200 and !(ttft_ms > 200) both drop a rejected
// request, and state == "rejected" || ttft_ms > 200 keeps it. An absent text is "".
package filter

import (
	"blis/pkg/expr"
	"blis/pkg/stream"
)

// CompileOutcome compiles a condition on outcomes. Errors begin with line:column of src. The filter
// must not be called by two goroutines at once. It returns errors that depend on values, such as
// double(id) of an id that is not a number.
func CompileOutcome(src string) (func(*stream.Outcome) (bool, error), error) {
	return compile(src, outcomeFields)
}

// CompileRequest compiles a condition on requests, as CompileOutcome does.
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
