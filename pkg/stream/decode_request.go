package stream

// decode reads one line into r, whose Prompt keeps its memory. What the line
// leaves out is absent in r.
func (r *Request) decode(s *scanner) error {
	*r = Request{Kind: KindRequest, DeadlineUS: Never, Prompt: r.Prompt[:0]}
	m := members{object: requestObject}
	for s.each(&m) {
		switch f := m.field; f.Name {
		case "kind":
			s.kind(f)
		case "id":
			r.ID = s.text(f)
		case "arrival_us":
			r.ArrivalUS = s.micros(f)
		case "input_tokens":
			r.InputTokens = s.integer(f)
		case "output_tokens":
			r.OutputTokens = s.integer(f)
		case "prompt":
			r.Prompt = s.segments(f, r.Prompt)
		case "tenant":
			r.Tenant = s.name(f)
		case "slo_class":
			r.SLOClass = s.name(f)
		case "model":
			r.Model = s.name(f)
		case "session":
			r.Session = s.name(f)
		case "turn":
			r.Turn = s.integer(f)
		case "deadline_us":
			r.DeadlineUS = s.micros(f)
		case "predicted_output_tokens":
			r.PredictedOutputTokens = s.integer(f)
		}
	}
	if err := s.finish(); err != nil {
		return err
	}
	return r.check(s)
}

// check holds r to the rules that join its fields.
func (r *Request) check(s *scanner) error {
	if r.ID == "" {
		s.failf("id is empty")
	}
	if r.DeadlineUS != Never && r.DeadlineUS < r.ArrivalUS {
		s.failf("deadline_us must be at least arrival_us (%d), not %d", r.ArrivalUS, r.DeadlineUS)
	}
	var sum int64
	for _, seg := range r.Prompt {
		sum += seg.Tokens
	}
	if sum > r.InputTokens {
		s.failf("the segments of prompt hold %d tokens, more than input_tokens (%d)", sum, r.InputTokens)
	}
	return s.err
}

// segments reads the list of a prompt's segments into the memory of list.
func (s *scanner) segments(f *Field, list []Segment) []Segment {
	for n := 0; s.element(f, n); n++ {
		var seg Segment
		m := members{object: segmentObject}
		for s.each(&m) {
			switch f := m.field; f.Name {
			case "id":
				seg.ID = s.name(f)
			case "tokens":
				seg.Tokens = s.integer(f)
			}
		}
		if seg.ID == "" {
			s.failf("id is empty")
		}
		if s.err != nil {
			s.within(f, n)
			return nil
		}
		list = append(list, seg)
	}
	return list
}
