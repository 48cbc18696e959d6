package stream

import (
	"strconv"
	"unicode/utf8"
)

// The encoders append one object without line feed and equal, byte for byte,
// encoding/json without HTML escaping. Kind is written as a constant. Fields
// stand in the order of the Go type.

func appendRequest(b []byte, r *Request) []byte {
	b = append(b, `{"kind":"request","id":`...)
	b = appendString(b, r.ID)
	b = appendInt(b, `,"arrival_us":`, int64(r.ArrivalUS))
	b = appendInt(b, `,"input_tokens":`, r.InputTokens)
	b = appendInt(b, `,"output_tokens":`, r.OutputTokens)
	b = appendSegments(b, r.Prompt)
	b = appendText(b, `,"tenant":`, r.Tenant)
	b = appendText(b, `,"slo_class":`, r.SLOClass)
	b = appendText(b, `,"model":`, r.Model)
	b = appendText(b, `,"session":`, r.Session)
	b = appendCount(b, `,"turn":`, r.Turn)
	b = appendTime(b, `,"deadline_us":`, r.DeadlineUS)
	b = appendCount(b, `,"predicted_output_tokens":`, r.PredictedOutputTokens)
	return append(b, '}')
}

func appendOutcome(b []byte, o *Outcome) []byte {
	b = append(b, `{"kind":"outcome","id":`...)
	b = appendString(b, o.ID)
	b = append(b, `,"state":`...)
	b = appendString(b, o.State)
	b = appendText(b, `,"reason":`, o.Reason)
	b = appendInt(b, `,"arrival_us":`, int64(o.ArrivalUS))
	b = appendTime(b, `,"admitted_us":`, o.AdmittedUS)
	b = appendTime(b, `,"routed_us":`, o.RoutedUS)
	b = appendTime(b, `,"enqueued_us":`, o.EnqueuedUS)
	b = appendTime(b, `,"scheduled_us":`, o.ScheduledUS)
	b = appendTime(b, `,"first_token_us":`, o.FirstTokenUS)
	b = appendTime(b, `,"completed_us":`, o.CompletedUS)
	b = appendTime(b, `,"ended_us":`, o.EndedUS)
	b = appendText(b, `,"deployment":`, o.Deployment)
	if !o.Replica.IsZero() {
		b = appendInt(b, `,"replica":`, int64(o.Replica))
	}
	b = appendText(b, `,"tenant":`, o.Tenant)
	b = appendText(b, `,"slo_class":`, o.SLOClass)
	b = appendText(b, `,"model":`, o.Model)
	b = append(b, `,"priority":`...)
	b = appendFloat(b, o.Priority)
	b = appendText(b, `,"session":`, o.Session)
	b = appendText(b, `,"step":`, o.Step)
	b = appendCount(b, `,"iteration":`, o.Iteration)
	b = appendText(b, `,"decision":`, o.Decision)
	b = appendInt(b, `,"input_tokens":`, o.InputTokens)
	b = appendInt(b, `,"output_tokens":`, o.OutputTokens)
	b = appendInt(b, `,"generated_tokens":`, o.GeneratedTokens)
	b = appendInt(b, `,"cached_tokens":`, o.CachedTokens)
	b = appendInt(b, `,"expected_cached_tokens":`, o.ExpectedCachedTokens)
	b = appendInt(b, `,"preemptions":`, o.Preemptions)
	b = appendCount(b, `,"preempted_us":`, o.PreemptedUS)
	b = appendInt(b, `,"delays":`, o.Delays)
	b = appendGaps(b, o.ITLUS)
	b = appendTime(b, `,"itl_max_us":`, o.ITLMaxUS)
	if o.SLOMet != nil {
		b = append(b, `,"slo_met":`...)
		b = strconv.AppendBool(b, *o.SLOMet)
	}
	return append(b, '}')
}

func appendGaps(b []byte, gaps [][2]int64) []byte {
	if len(gaps) == 0 {
		return b
	}
	b = append(b, `,"itl_us":`...)
	separator := byte('[')
	for _, gap := range gaps {
		b = append(b, separator)
		b = appendInt(b, `[`, gap[0])
		b = appendInt(b, `,`, gap[1])
		b = append(b, ']')
		separator = ','
	}
	return append(b, ']')
}

func appendDecision(b []byte, d *Decision, m *numbers) []byte {
	b = append(b, `{"kind":"decision","id":`...)
	b = appendString(b, d.ID)
	b = append(b, `,"stage":`...)
	b = appendString(b, d.Stage)
	b = appendInt(b, `,"at_us":`, int64(d.AtUS))
	b = append(b, `,"request":`...)
	b = appendString(b, d.Request)
	b = appendText(b, `,"verdict":`, d.Verdict)
	b = appendCount(b, `,"delay_us":`, d.DelayUS)
	b = appendText(b, `,"deployment":`, d.Deployment)
	if !d.Replica.IsZero() {
		b = appendInt(b, `,"replica":`, int64(d.Replica))
	}
	b = append(b, `,"score":`...)
	b = m.append(b, d.Score)
	b = appendInt(b, `,"candidates":`, d.Candidates)
	b = appendText(b, `,"reason":`, d.Reason)
	b = appendText(b, `,"rule":`, d.Rule)
	b = appendCount(b, `,"expected_cached_tokens":`, d.ExpectedCachedTokens)
	for i, name := range d.Scorers {
		b = append(b, separator(i, `,"scorers":[`)...)
		b = appendString(b, name)
	}
	if len(d.Scorers) > 0 {
		b = append(b, ']')
	}
	for i := range d.Considered {
		b = append(b, separator(i, `,"considered":[`)...)
		b = appendCandidate(b, &d.Considered[i], m)
	}
	if len(d.Considered) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// separator is what stands before element i of a list that begins so.
func separator(i int, begin string) string {
	if i == 0 {
		return begin
	}
	return ","
}

func appendCandidate(b []byte, c *Candidate, m *numbers) []byte {
	b = append(b, `{"deployment":`...)
	b = appendString(b, c.Deployment)
	b = appendInt(b, `,"replica":`, int64(c.Replica))
	if c.Filtered {
		b = append(b, `,"filtered":true`...)
	}
	b = appendNumber(b, `,"score":`, c.Score, m)
	for i, x := range c.Terms {
		b = append(b, separator(i, `,"terms":[`)...)
		b = m.append(b, x)
	}
	if len(c.Terms) > 0 {
		b = append(b, ']')
	}
	b = appendInt(b, `,"inflight":`, int64(c.Inflight))
	b = appendIndex(b, `,"queue_depth":`, c.QueueDepth)
	b = appendIndex(b, `,"running":`, c.Running)
	b = appendNumber(b, `,"kv_util":`, c.KVUtil, m)
	b = appendNumber(b, `,"hit_rate":`, c.HitRate, m)
	b = appendNumber(b, `,"recent_ttft_ms":`, c.RecentTTFTMS, m)
	b = appendNumber(b, `,"recent_tpot_ms":`, c.RecentTPOTMS, m)
	b = appendNumber(b, `,"est_wait_ms":`, c.EstWaitMS, m)
	b = appendIndex(b, `,"matched_blocks":`, c.Matched)
	b = appendIndex(b, `,"cached_blocks":`, c.Cached)
	b = appendCount(b, `,"age_us":`, c.AgeUS)
	return append(b, '}')
}

// appendNumber leaves out what is no number.
func appendNumber(b []byte, name string, n Number, m *numbers) []byte {
	if n.IsZero() {
		return b
	}
	return m.append(append(b, name...), float64(n))
}

// appendIndex leaves out what has no place.
func appendIndex(b []byte, name string, i Index) []byte {
	if i.IsZero() {
		return b
	}
	return appendInt(b, name, int64(i))
}

func appendStep(b []byte, s *Step) []byte {
	b = append(b, `{"kind":"step","deployment":`...)
	b = appendString(b, s.Deployment)
	b = appendInt(b, `,"replica":`, int64(s.Replica))
	b = appendInt(b, `,"start_us":`, int64(s.StartUS))
	b = appendInt(b, `,"end_us":`, int64(s.EndUS))
	b = appendInt(b, `,"prefill_tokens":`, s.PrefillTokens)
	b = appendInt(b, `,"decode_tokens":`, s.DecodeTokens)
	b = appendInt(b, `,"running":`, s.Running)
	b = appendInt(b, `,"waiting":`, s.Waiting)
	b = appendInt(b, `,"used_blocks":`, s.UsedBlocks)
	b = appendInt(b, `,"preempted":`, s.Preempted)
	return append(b, '}')
}

func appendInt(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(b, name...), v, 10)
}

// appendTime leaves out what never happened.
func appendTime(b []byte, name string, t Micros) []byte {
	if t.IsZero() {
		return b
	}
	return appendInt(b, name, int64(t))
}

// appendText leaves out the empty string.
func appendText(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, name...), s)
}

// plain has true for each byte that stands for itself in a JSON string and is
// a character by itself.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		size, escape := 1, true
		var r rune
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
			escape = r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029'
		}
		if escape {
			b = append(b, s[from:i]...)
			b = appendEscape(b, c, r)
			from = i + size
		}
		i += size
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// appendEscape writes the escape of the character r or, below utf8.RuneSelf, of
// the byte c. What is not UTF-8 becomes U+FFFD.
func appendEscape(b []byte, c byte, r rune) []byte {
	switch {
	case r == utf8.RuneError:
		return append(b, `\ufffd`...)
	case c >= utf8.RuneSelf: // U+2028, U+2029: line ends in JavaScript
		return append(b, '\\', 'u', '2', '0', '2', hexDigits[r&0xF])
	}
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}
