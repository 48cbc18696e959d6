package parquet

import "blis/pkg/stream"

// derivedDocs describe the columns of outcomes that are no field on the wire.
var derivedDocs = []struct{ name, doc string }{
	{"ttft_ms", "Time from arrival, that of the first attempt, to the first token, in ms."},
	{"tpot_ms", "Time per output token after the first, in ms; " +
		"only if completed with more than one output token."},
	{"e2e_ms", "Time from arrival, that of the first attempt, to the last token, in ms; only if completed."},
	{"queue_ms", "Time from entering the replica's queue to the first batch, in ms."},
}

// The latencies in ms are those that expressions of --where use. They are nil if missing.
func ttftMS(o *stream.Outcome) *float64  { return elapsed(o.Began(), o.FirstTokenUS) }
func e2eMS(o *stream.Outcome) *float64   { return elapsed(o.Began(), o.CompletedUS) }
func queueMS(o *stream.Outcome) *float64 { return elapsed(o.QueueStartUS(), o.ScheduledUS) }

func tpotMS(o *stream.Outcome) *float64 {
	if o.FirstTokenUS.IsZero() || o.CompletedUS.IsZero() || o.OutputTokens <= 1 {
		return nil
	}
	tpot := stream.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens)
	return &tpot
}

// elapsed is the time between two events in ms, nil unless both happened.
func elapsed(from, to stream.Micros) *float64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	ms := float64(to-from) / 1000
	return &ms
}
