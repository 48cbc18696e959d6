package stream

import "strconv"

func appendSession(b []byte, s *Session) []byte {
	b = append(b, `{"kind":"session","id":`...)
	b = appendString(b, s.ID)
	b = appendInt(b, `,"arrival_us":`, int64(s.ArrivalUS))
	b = appendText(b, `,"tenant":`, s.Tenant)
	b = appendText(b, `,"slo_class":`, s.SLOClass)
	b = appendText(b, `,"model":`, s.Model)
	b = appendText(b, `,"workflow":`, s.Workflow)
	b = appendTime(b, `,"until_us":`, s.UntilUS)
	if s.Persistent {
		b = append(b, `,"persistent":true`...)
	}
	b = append(b, `,"steps":[`...)
	for i := range s.Steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSessionStep(b, &s.Steps[i])
	}
	return append(b, "]}"...)
}

func appendSessionStep(b []byte, t *SessionStep) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, t.ID)
	b = appendText(b, `,"step":`, t.Step)
	b = appendCount(b, `,"iteration":`, t.Iteration)
	for i, at := range t.After {
		if i == 0 {
			b = append(b, `,"after":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(at), 10)
	}
	if len(t.After) > 0 {
		b = append(b, ']')
	}
	b = appendCount(b, `,"delay_us":`, t.DelayUS)
	b = appendText(b, `,"tool":`, t.Tool)
	b = appendCount(b, `,"latency_us":`, t.LatencyUS)
	b = appendText(b, `,"model":`, t.Model)
	b = appendCount(b, `,"input_tokens":`, t.InputTokens)
	b = appendCount(b, `,"output_tokens":`, t.OutputTokens)
	if !t.Extends.IsZero() {
		b = appendInt(b, `,"extends":`, int64(t.Extends))
	}
	b = appendCount(b, `,"keep_tokens":`, t.KeepTokens)
	b = appendSegments(b, t.Prompt)
	b = appendCount(b, `,"timeout_us":`, t.TimeoutUS)
	b = appendCount(b, `,"predicted_output_tokens":`, t.PredictedOutputTokens)
	return append(b, '}')
}

func appendSegments(b []byte, prompt []Segment) []byte {
	for i := range prompt {
		if i == 0 {
			b = append(b, `,"prompt":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = appendString(b, prompt[i].ID)
		b = appendInt(b, `,"tokens":`, prompt[i].Tokens)
		b = append(b, '}')
	}
	if len(prompt) > 0 {
		b = append(b, ']')
	}
	return b
}

// appendCount leaves out 0.
func appendCount(b []byte, name string, v int64) []byte {
	if v == 0 {
		return b
	}
	return appendInt(b, name, v)
}
