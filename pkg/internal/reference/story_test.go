package reference

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

func TestStories(t *testing.T) {
	stories := 0
	datadriven.Walk(t, "../../../testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown directive %s: have run", d.Cmd)
			}
			config, requests, err := ParseStory(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			var show []string
			for _, a := range d.CmdArgs {
				show = append(show, a.Key)
			}
			stories++
			return Run(config, requests).Text(show...)
		})
	})
	if stories < 10 {
		t.Errorf("only %d stories", stories)
	}
}

func TestParseStoryErrors(t *testing.T) {
	const cluster = "cluster beta=1,1,1\n"
	for _, c := range []struct{ text, want string }{
		{"cluster seqs=two", `story line 1: cluster seqs=two: strconv.Atoi`},
		{"cluster speed=9", "story line 1: cluster speed=9: unknown key"},
		{"cluster chunked=yes", "want on or off"},
		{"cluster async=1", "want on or off"},
		{"cluster beta=1,1,1 watermark=1.5", "watermark must be between 0 and 1, is 1.5"},
		{"cluster alpha=1,2 beta=1,1,1", "want three or four numbers"},
		{"cluster replicas=1", "beta has 0 numbers, not 3 or 4"},
		{"cluster beta=1,1,1 replicas=0", "a cluster that cannot exist"},
		{"cluster beta=1,1,1 routing=best", `unknown routing "best"`},
		{"cluster beta=1,1,1 scorers=luck:1", `unknown scorer "luck"`},
		{cluster + "\n# a comment\ndepart id=a", "story line 4: depart id=a: have cluster, pools, encode, " +
			"scale, scale_prefill, flow, failures, fail, arrive"},
		{cluster + "scale signal=luck", "want one of [kv_util utilization queue_depth running inflight]"},
		{cluster + "arrive id=a in=4 out=1 prompt=p", `story line 2: arrive prompt=p: strconv.Atoi`},
		{cluster + "arrive id=a in=4 out=1 prompt=p:5", "request a: segments of 5 tokens in a prompt of 4"},
		{cluster + "arrive id=a in=4 out=1 prompt=p:0", "request a: segment p has 0 tokens"},
		{cluster + "arrive id=a in=4 out=0", "request a: input and output must be at least 1 token"},
		{cluster + "arrive id=a in=4 out=1\narrive id=a in=4 out=1", "request a: there are two"},
		{cluster + "arrive id=a at=5 in=4 out=1\narrive id=b at=4 in=4 out=1", "request b: arrival 4 after 5"},
		{cluster + "arrive id=a at=5 in=4 out=1 deadline=4", "request a: deadline 4 before arrival 5"},
	} {
		_, _, err := ParseStory(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}
