package sim

// brokenFrontDoor are rules of servers that reject requests.
var brokenFrontDoor = []rule{
	{"a server has at most max_num_queued_reqs requests", "sim/frontdoor.go",
		"r.admitted.reqs >= int64(*door.reqs)", "r.admitted.reqs > int64(*door.reqs)"},
	{"it rejects when max_num_queued_tokens are reached", "sim/frontdoor.go",
		"r.admitted.promptTokens >= int64(*door.tokens)", "r.admitted.promptTokens > int64(*door.tokens)"},
	{"the limit of requests is checked first", "sim/frontdoor.go",
		"case door.reqs != nil &&", "case door.reqs != nil && door.tokens == nil &&"},
	{"it checks when a request comes", "sim/stages.go",
		"if reason := s.rejects(to); reason != \"\" {", "if reason := \"\"; reason != \"\" {"},
	{"it checks again when the request is tokenized", "sim/stages.go",
		"if reason := s.rejects(r.replica); reason != \"\" {", "if reason := \"\"; reason != \"\" {"},
	{"whole prompts count", "sim/frontdoor.go",
		"n.promptTokens += r.out.InputTokens\n	r.atServer, r.queuedTokens = true, r.out.InputTokens",
		"n.promptTokens += r.out.InputTokens - 1\n	r.atServer, r.queuedTokens = true, r.out.InputTokens-1"},
	{"they count until there is a token", "sim/steps.go",
		"		if r.atServer {\n			s.countFirst(r)\n		}\n", ""},
	{"requests count until they end", "sim/frontdoor.go",
		"		s.countFirst(r)\n		s.replicas[r.replica].admitted.reqs--\n", "		s.countFirst(r)\n"},
	{"an end frees the prompt, too", "sim/frontdoor.go",
		"		s.countFirst(r)\n		s.replicas[r.replica].admitted.reqs--\n",
		"		s.replicas[r.replica].admitted.reqs--\n"},
	{"a rejected request has left its replica", "sim/frontdoor.go",
		"	s.leaveOnTheWay(slot)\n", "	s.router.flow.recordDeparture(s.request(slot))\n"},
	{"max_num_active_seqs limits the running requests", "sim/specs.go",
		"MaxNumSeqs: e.ActiveSeqs() * cores,", "MaxNumSeqs: e.MaxNumSeqs * cores,"},
}
