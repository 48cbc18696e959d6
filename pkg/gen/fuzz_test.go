package gen

import "testing"

// Whatever the input, a run either fails or writes a complete stream that readers accept.

func FuzzSpec(f *testing.F) {
	f.Add(goodSpec)
	f.Add(goodAgent)
	for _, c := range sessionClients {
		f.Add(specText("aggregate_rate: 50\nhorizon: 20000000", clientText(c.name, c.fields)))
	}
	f.Add(specText("aggregate_rate: 50\nhorizon: 20000000", clientA, clientB, clientC))
	for _, name := range Scenarios.Names() {
		_, text, err := Scenario(name).load()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, spec string) {
		if stream, err := generate(spec, Options{Spec: "-", Requests: 20}); err == nil {
			_, list := decode(t, stream)
			checkInvariants(t, list)
			decodeSessions(t, stream)
		}
	})
}

// FuzzImport fuzzes the processing of traces; the parsers are fuzzed in pkg/trace.
func FuzzImport(f *testing.F) {
	f.Add("azure", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 "+
		"18:17:04.0319600,3180,8")
	f.Add("azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,\"2162\",5\n")
	f.Add("mooncake", `{"timestamp": 1500, "input_length": 1100, "output_length": 500, "hash_ids": [46, 47, `+
		`48]}`+"\n\n")
	f.Add("mooncake", `{"timestamp":46.927,"input_length":2358,"output_length":531}`)
	f.Add("csv", earlyText)
	f.Add("bailian", `{"chat_id": 8, "parent_chat_id": 7, "timestamp": 61.25, "input_length": 48, "output_length": `+
		`9, "type": "search", "turn": 2, "hash_ids": [1, 2, 4]}`)
	f.Add("tracev2",
		"request_id,session_id,round_index,prefix_group,prefix_length,input_tokens,output_tokens,"+
			"deadline_us,arrival_time_us\n204,s,2,g,100,50,7,3000000,2300000\n")
	f.Add("burstgpt", "Timestamp,Session ID,Model,Request tokens,Response tokens,Total tokens,Log "+
		"Type\n1,s1,ChatGPT,10,20,30,Conversation log\n")
	f.Add("vllm-bench", `{"input_lens": [7, 8], "output_lens": [4, 3], "start_times": [1000.5, 1000.0], `+
		`"errors": ["", ""]}`)
	f.Add("weka", sessionsText)
	f.Fuzz(func(t *testing.T, format, trace string) {
		for _, o := range []Options{{}, {TimeScale: 0.3}, {Rate: 7}, {Limit: 1}, {Repeat: 2}, {Sample: 0.5}} {
			o.Import = []Import{{format, "-"}}
			if stream, err := generate(trace, o); err == nil {
				_, list := decode(t, stream)
				checkInvariants(t, list)
			}
		}
	})
}
