package gen

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

const (
	behaviorHead = "aggregate_rate: 10\nhorizon: 1000000000\n"
	plainText    = `rate_fraction: 0.5, arrival: {process: poisson}, `
	// Twenty equally popular groups, one in every prompt.
	groupsText = `prefix_spec: {num_prefix_groups: 20, prefix_length: {type: constant, params: {value: 5}}}, `
)

// withNeighbor returns the requests of a client with the given fields, without ids. It checks that
// the requests of a second client stay unchanged.
func withNeighbor(t *testing.T, head, fields string) []stream.Request {
	t.Helper()
	client := func(id, fields string) string { return clientText(id, plainText+groupsText+fields+lengthsText) }
	_, without := requests(t, specText(behaviorHead, client("a", ""), client("b", "")), Options{Spec: "-"})
	_, list := requests(t, specText(behaviorHead+head, client("a", fields), client("b", "")), Options{Spec: "-"})
	checkInvariants(t, list)
	if head == "" && !reflect.DeepEqual(ofTenant(list, "b"), ofTenant(without, "b")) {
		t.Errorf("%s changes the requests of the other client", fields)
	}
	return ofTenant(list, "a")
}

// Options of a client change only the field that they are about.
func TestOptionsDoNotAffectOtherFields(t *testing.T) {
	plain := withNeighbor(t, "", "")
	for _, c := range []struct {
		fields string
		forget func(*stream.Request)
	}{
		{"behavior: {type: normal}, ", func(*stream.Request) {}},
		{"deadline: {type: exponential, params: {mean: 1000000}}, ",
			func(r *stream.Request) { r.DeadlineUS = stream.Never }},
		{"predicted_output: {error: 0.5}, ", func(r *stream.Request) { r.PredictedOutputTokens = 0 }},
		{"stop: eos, ", func(r *stream.Request) { r.Stop = "" }},
		{"adapters: {count: 9}, ", func(r *stream.Request) { r.Adapter = "" }},
		{"grammars: {count: 9, share: 0.5}, ", func(r *stream.Request) { r.Grammar = "" }},
		{"archetype: {typical_prompt_size: elephant, prefix_reuse_affinity: 1}, ", func(*stream.Request) {}},
	} {
		list := withNeighbor(t, "", c.fields)
		for i := range list {
			c.forget(&list[i])
		}
		if !reflect.DeepEqual(list, plain) {
			t.Errorf("%s changes other fields", c.fields)
		}
	}
	// Bursts are additional; the other requests stay unchanged.
	list := withNeighbor(t, "", "behavior: {type: bursty}, ")
	at := 0
	for _, r := range list {
		if at < len(plain) && reflect.DeepEqual(r, plain[at]) {
			at++
		}
	}
	if at != len(plain) || len(list) <= at {
		t.Errorf("of %d requests %d are among the %d with bursts", len(plain), at, len(list))
	}
}

// instants returns the times at which more than most requests arrive, and how many.
func instants(list []stream.Request, most int) (times []stream.Micros, sizes []float64) {
	for i := 0; i < len(list); {
		n := i
		for n < len(list) && list[n].ArrivalUS == list[i].ArrivalUS {
			n++
		}
		if n-i > most {
			times, sizes = append(times, list[i].ArrivalUS), append(sizes, float64(n-i))
		}
		i = n
	}
	return times, sizes
}

// Bursts have the configured frequency and size, and the documented defaults.
func TestBurstsOfClients(t *testing.T) {
	for _, c := range []struct {
		fields     string
		mean, each float64 // size, seconds between bursts
	}{
		{"behavior: {type: bursty}, ", 50, 60}, // 10 s at a rate of 5
		{"archetype: {burst_propensity: 0.5}, ", 50, 120},
		{"behavior: {type: bursty}, archetype: {burst_propensity: 0.5}, ", 50, 120},
		{"behavior: {type: bursty, burst: {burst_probability: 1}}, archetype: {burst_propensity: 0.5}, ", 50, 60},
		{"behavior: {type: bursty, burst: {burst_probability: 0.25, burst_size: {type: uniform, params: {min: 20, " +
			"max: 40}}, burst_interval: {type: exponential, params: {mean: 5000000}}}}, ", 30, 20},
	} {
		times, sizes := instants(withNeighbor(t, "", c.fields), 5)
		sum := 0.0
		for _, n := range sizes {
			sum += n
		}
		want := 1000 / c.each
		if n := float64(len(times)); math.Abs(n-want) > 4*math.Sqrt(want) || math.Abs(sum/n-c.mean) > 0.05*c.mean {
			t.Errorf("%s: %g bursts with mean size %g, want %g of %g", c.fields, n, sum/n, want, c.mean)
		}
	}
	if times, _ := instants(withNeighbor(t, "", "behavior: {type: normal}, archetype: {burst_propensity: 1}, "),
		5); times != nil {
		t.Errorf("a normal client has %d bursts", len(times))
	}
}

// Adversarial clients burst at the same times, with long prompts.
func TestAdversarialClients(t *testing.T) {
	const fields = plainText + "behavior: {type: adversarial}, " + lengthsText
	_, list := requests(t, specText(behaviorHead, clientText("a", fields), clientText("b", fields)), Options{Spec: "-"})
	var last []stream.Micros
	for _, tenant := range []string{"a", "b"} {
		own := ofTenant(list, tenant)
		times, _ := instants(own, 5)
		if len(times) != 16 || times[0] != 60e6 || times[15] != 16*60e6 || last != nil && !slices.Equal(times, last) {
			t.Errorf("%s has bursts at %v", tenant, times)
		}
		last = times
		inBurst, n := 0.0, 0.0
		for _, r := range own {
			if slices.Contains(times, r.ArrivalUS) {
				inBurst, n = inBurst+float64(r.InputTokens), n+1
			}
		}
		if inBurst /= n; math.Abs(inBurst/4000-1) > 0.1 {
			t.Errorf("prompts of %g tokens in bursts, want 8 times 500", inBurst)
		}
	}
}

func TestAbusiveClients(t *testing.T) {
	plain := withNeighbor(t, "", "")
	for _, c := range []struct {
		abuse                         string
		inputs, outputs, rate, shared float64 // factors
	}{
		{"abuse: {}", 1, 1, 1, 1},
		{"abuse: {oversized_prompts: true}", 8, 1, 1, 1},
		{"abuse: {rapid_fire: true}", 1, 1, 5, 1},
		{"abuse: {resource_exhaustion: true}", 1, 8, 1, 0},
		{"", 8, 8, 5, 0},
	} {
		list := withNeighbor(t, "", "behavior: {type: abusive, "+c.abuse+"}, ")
		if got := float64(len(list)) / float64(len(plain)); math.Abs(got/c.rate-1) > 0.05 {
			t.Errorf("%q: %g times as many requests", c.abuse, got)
		}
		for i, r := range list[:len(plain)] {
			// Where prompts are clamped to 1 or rounded, the factor 8 is not exact.
			if math.Abs(float64(r.InputTokens)-c.inputs*float64(plain[i].InputTokens)) > 8 ||
				math.Abs(float64(r.OutputTokens)-c.outputs*float64(plain[i].OutputTokens)) > 8 {
				t.Fatalf("%q: %v, without %v", c.abuse, r, plain[i])
			}
			if (len(r.Prompt) > 0) != (c.shared > 0) {
				t.Fatalf("%q: prefix %v", c.abuse, r.Prompt)
			}
		}
	}
}

func TestArchetypes(t *testing.T) {
	const outputs = "output_distribution: {type: constant, params: {value: 1}}"
	for _, size := range PromptSizes {
		_, list := requests(t, specText("aggregate_rate: 10\nrequests: 10000",
			clientText("a", "rate_fraction: 1, arrival: {process: poisson}, archetype: {typical_prompt_size: "+
				""+size.Name+"}, "+outputs)), Options{Spec: "-"})
		sum := 0.0
		for _, r := range list {
			sum += float64(r.InputTokens) / float64(len(list))
		}
		if math.Abs(sum/size.Value-1) > 0.04 {
			t.Errorf("%s prompts have %g tokens, want %g", size.Name, sum, size.Value)
		}
	}
	for _, c := range []struct {
		reuse string
		want  float64
	}{{"", 0.3}, {"reuse_probability: 0.8, ", 0.8}, {"reuse_probability: 1, ", 1}} {
		fields := "rate_fraction: 1, arrival: {process: poisson}, archetype: {prefix_reuse_affinity: 0.3}, " +
			"prefix_spec: {" + c.reuse + "num_prefix_groups: 1, prefix_length: {type: constant, params: {value: " +
			"1}}}, " + lengthsText
		_, list := requests(t, specText("aggregate_rate: 10\nrequests: 10000", clientText("a", fields)),
			Options{Spec: "-"})
		with := 0.0
		for _, r := range list {
			with += float64(len(r.Prompt)) / float64(len(list))
		}
		if math.Abs(with-c.want) > 0.02 {
			t.Errorf("%q: a share of %g begins with a prefix, want %g", c.reuse, with, c.want)
		}
	}
}

// A prompt repeats the previous group with the configured probability or by chance; popularity
// stays unchanged.
func TestPrefixCorrelation(t *testing.T) {
	for _, prob := range []float64{0, 0.6} {
		list := withNeighbor(t, map[float64]string{0: "",
			0.6: "correlations: {intra_tenant_prefix_correlation: 0.6}\n"}[prob], "")
		again, n, groups := 0.0, 0.0, map[string]float64{}
		last := ""
		for _, r := range list {
			if len(r.Prompt) == 0 {
				continue
			}
			if n++; r.Prompt[0].ID == last {
				again++
			}
			last = r.Prompt[0].ID
			groups[last]++
		}
		if want := prob + (1-prob)/20; math.Abs(again/n-want) > 4*math.Sqrt(want*(1-want)/n) {
			t.Errorf("a share of %g repeats the previous group, want %g", again/n, want)
		}
		// Runs of mean length 1/(1 − prob) widen the deviation of a share.
		for id, count := range groups {
			if math.Abs(count/n-0.05) > 4*math.Sqrt(0.05*(1+prob)/(1-prob)/n) {
				t.Errorf("a share of %g has group %s, want 0.05", count/n, id)
			}
		}
	}
}

// Prompts are longer in bursts and shorter outside; their overall distribution stays unchanged.
func TestBurstSizeCorrelation(t *testing.T) {
	const fields = "behavior: {type: bursty, burst: {burst_interval: {type: exponential, params: {mean: 20000000}}}}, "
	mean := func(head string) (inside, outside, all float64) {
		list := withNeighbor(t, head, fields)
		times, _ := instants(list, 5)
		var in, out []float64
		for _, r := range list {
			if slices.Contains(times, r.ArrivalUS) {
				in = append(in, float64(r.InputTokens))
			} else {
				out = append(out, float64(r.InputTokens))
			}
		}
		sum := func(v []float64) (s float64) {
			for _, x := range v {
				s += x
			}
			return s
		}
		return sum(in) / float64(len(in)), sum(out) / float64(len(out)), (sum(in) + sum(out)) / float64(len(list))
	}
	if inside, outside, _ := mean(""); math.Abs(inside/outside-1) > 0.05 {
		t.Errorf("means %g and %g without a correlation", inside, outside)
	}
	inside, outside, all := mean("correlations: {burst_size_correlation: 0.8}\n")
	if inside < 1.5*outside || math.Abs(all/500-1) > 0.05 {
		t.Errorf("mean %g in bursts, %g outside, %g overall", inside, outside, all)
	}
}

func TestInvalidBehaviors(t *testing.T) {
	const archetype = "archetype: {typical_prompt_size: large, burst_propensity: 0.5}, "
	const bursty = "behavior: {type: bursty, burst: {burst_probability: 0.5, burst_size: {type: constant, params: " +
		"{value: 5}}}}, "
	const others = "deadline: {type: constant, params: {value: 5}}, predicted_output: {error: 0.5, bias: 2}, " +
		"multimodal: {image_tokens: {type: constant, params: {value: 5}}, images_per_request: {type: constant, " +
		"params: {value: 5}}}, stop: eos, adapters: {name: chat, count: 50, zipf: 1}, " +
		"grammars: {name: s, count: 3, zipf: 2, share: 0.5}, priority: -3, "
	const correlations = "correlations: {intra_tenant_prefix_correlation: 0.5, burst_size_correlation: 0.5}\n"
	good := specText("aggregate_rate: 1\nrequests: 9\n"+correlations,
		clientText("a", plainText+archetype+bursty+others+lengthsText), clientText("b", plainText+lengthsText))
	if _, err := generate(good, Options{Spec: "-"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"type: bursty", "type: birsty", `stdin:8:157: clients[0].behavior.type: unknown behavior "birsty"; did you ` +
			`mean "bursty"? (have normal, bursty, abusive, adversarial)`},
		{"type: bursty", "type: normal", "clients[0].behavior.burst: is only for bursty and adversarial clients, not " +
			"for normal ones"},
		{"type: bursty", "type: abusive", "clients[0].behavior.burst: is only for bursty and adversarial clients, " +
			"not for abusive ones"},
		{"burst: {burst_probability: 0.5, burst_size: {type: constant, params: {value: 5}}}",
			"abuse: {burst_probability: 0.5}", `unknown field "burst_probability"`},
		{"burst: {burst_probability: 0.5,", "abuse: {}, burst: {burst_probability: 0.5,",
			"clients[0].behavior.abuse: is only for abusive clients, not for bursty ones"},
		{"burst_probability: 0.5", "burst_probability: 0",
			"clients[0].behavior.burst.burst_probability: must be above 0 and at most 1, is 0"},
		{"burst_size: {type: constant", "burst_size: {type: constint",
			"clients[0].behavior.burst.burst_size.type: unknown distribution"},
		{"burst_probability: 0.5", "burst_interval: {type: constant, params: {value: 0}}",
			"clients[0].behavior.burst.burst_interval: must have a mean of at least 1 µs"},
		{"id: b", `id: a/burst`, `clients[0].id: its bursts would be called "a/burst", which is the id of ` +
			`another client`},
		{"large", "larg", `clients[0].archetype.typical_prompt_size: unknown prompt size "larg"; did you ` +
			`mean "large"?`},
		{"burst_propensity: 0.5", "burst_propensity: 2",
			"clients[0].archetype.burst_propensity: must be between 0 and 1, is 2"},
		{"burst_propensity: 0.5", "prefix_reuse_affinity: 0.5",
			"clients[0].archetype.prefix_reuse_affinity: needs a prefix_spec"},
		{"burst_propensity: 0.5", "session_length: {type: constant, params: {value: 5}}",
			"clients[0].archetype.session_length: is only for clients that send sessions"},
		{"correlation: 0.5", "correlation: 1.5", "correlations.intra_tenant_prefix_correlation: must be between 0 " +
			"and 1, is 1.5"},
		{"burst_size_correlation: 0.5", "burst_size_correlation: -1",
			"correlations.burst_size_correlation: must be between 0 and 1, is -1"},
		{"error: 0.5", "error: -1", "clients[0].predicted_output.error: must be between 0 and 100, is -1"},
		{"bias: 2", "bias: 0", "clients[0].predicted_output.bias: must be above 0 and at most 1000, is 0"},
		{"name: chat", `name: ""`, "clients[0].adapters.name: must not be empty"},
		{"count: 50, ", "", "clients[0].adapters.count is not in the file: must be between 1 and 1000000"},
		{"name: s,", `name: "",`, "clients[0].grammars.name: must not be empty"},
		{"count: 3, ", "", "clients[0].grammars.count is not in the file: must be between 1 and 1000000"},
		{"zipf: 2", "zipf: -1", "clients[0].grammars.zipf: must be between 0 and 10, is -1"},
		{"share: 0.5", "share: 1.5", "clients[0].grammars.share: must be between 0 and 1, is 1.5"},
		{"zipf: 1", "zipf: 10.5", "clients[0].adapters.zipf: must be between 0 and 10, is 10.5"},
		{"priority: -3", "priority: 3000000000",
			"clients[0].priority: must be between -2147483647 and 2147483647, is 3000000000"},
		{"stop: eos", "stop: length", `clients[0].stop: must be eos, is "length"`},
		{"deadline: {type: constant, params: {value: 5}}", "deadline: {type: constant, params: {value: -5}}",
			"clients[0].deadline.params.value: must be between 0 and"},
		{"deadline: {type: constant", "deadlines: {type: constant",
			`unknown field "deadlines"; did you mean "deadline"?`},
		{"image_tokens: {type: constant, params: {value: 5}}, ", "",
			"clients[0].multimodal.image_tokens is not in the file: must be given with images_per_request"},
		{"images_per_request: {type: constant, params: {value: 5}}",
			"images_per_request: {type: exponential, params: {mean: 5}}",
			"clients[0].multimodal.images_per_request: must be at most 10000, can be 2147483647: give it a max"},
		{"{image_tokens: {type: constant, params: {value: 5}}, images_per_request: {type: constant, params: {value: " +
			"5}}}", "{}", "clients[0].multimodal: must have one of image_tokens"},
	} {
		spec := strings.Replace(good, c.old, c.new, 1)
		if spec == good {
			t.Fatalf("no %q in the good spec", c.old)
		}
		_, err := generate(spec, Options{Spec: "-"})
		var bad *strictyaml.Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.new, err, c.want)
		}
	}
}
