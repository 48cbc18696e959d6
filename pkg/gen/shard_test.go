package gen

import (
	"fmt"
	"testing"

	"blis/pkg/stream"
)

// TestShards: each arrival of a workload is in exactly one shard, unchanged and in order, with all others of its
// session or tenant. The shards keep the seed and the digest of the whole.
func TestShards(t *testing.T) {
	head, _ := requests(t, "", Options{Scenario: "chat", Requests: 5})
	sharded, _ := requests(t, "", Options{Scenario: "chat", Requests: 5, Shard: Shard{2, 3}})
	if head.Shard != nil || sharded.Shard == nil || *sharded.Shard != (stream.Shard{Part: 2, Of: 3, By: "session"}) ||
		sharded.Seed != head.Seed || sharded.SpecDigest != head.SpecDigest {
		t.Errorf("headers %+v and %+v", head, sharded)
	}
	name := file(t, "w.jsonl", mixedText(300))
	for _, o := range []Options{{Scenario: "unfair-tenants", Requests: 500}, {Scenario: "react-agent", Requests: 60},
		{Import: []Import{{"blis", name}}, Limit: 250, Rate: 3}} {
		for _, by := range stream.ShardKeys {
			const of = 3
			o.Shard = Shard{}
			whole := arrivals(t, "", o)
			at, shardOf, sizes := map[string]int{}, map[string]int64{}, [of]int{}
			for i := range whole {
				at[*whole[i].ID()] = i
			}
			for part := int64(1); part <= of; part++ {
				o.Shard, o.ShardBy = Shard{part, of}, by
				last := -1
				for _, a := range arrivals(t, "", o) {
					i, ok := at[*a.ID()]
					if !ok || i <= last || fmt.Sprint(a) != fmt.Sprint(whole[i]) {
						t.Fatalf("%v by %s: shard %d has %v, which is not the next one of the workload", o.Scenario, by,
							part, a)
					}
					delete(at, *a.ID())
					last = i
					sizes[part-1]++
					key := a.Request.Session + a.Session.ID
					if by == "tenant" {
						key = a.Request.Tenant + a.Session.Tenant
					}
					if key != "" || by == "tenant" {
						if before := shardOf[key]; before != 0 && before != part {
							t.Errorf("%s %q is in the shards %d and %d", by, key, before, part)
						}
						shardOf[key] = part
					}
				}
			}
			if len(at) > 0 || sizes == [of]int{} {
				t.Errorf("%v by %s: %d arrivals are in no shard", o.Scenario, by, len(at))
			}
			if by == "session" && min(sizes[0], sizes[1], sizes[2]) < len(whole)/of/2 {
				t.Errorf("%v: the shards have %v arrivals", o.Scenario, sizes)
			}
		}
	}
}

// mixedText has requests of sessions and without.
func mixedText(n int) (text string) {
	for i := range n {
		session := ""
		if i%3 > 0 {
			session = fmt.Sprintf(`,"session":"s%d","turn":%d`, i%40, i/40)
		}
		text += fmt.Sprintf(`{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":10,"output_tokens":2,`+
			`"tenant":"t%d"%s}`+"\n", i, i*1000, i%7, session)
	}
	return text
}

// TestShardText: K/N with K from 1 to N.
func TestShardText(t *testing.T) {
	for text, want := range map[string]Shard{"1/1": {1, 1}, "3/8": {3, 8}, "0/3": {}, "4/3": {}, "1": {}, "a/b": {},
		"-1/2": {}, "": {}} {
		var s Shard
		if err := s.UnmarshalText([]byte(text)); s != want || (err == nil) != (want != Shard{}) {
			t.Errorf("%q is %v, %v", text, s, err)
		}
	}
	if err := (&Options{Shard: Shard{1, 2}, PrintSpec: true}).Validate(); err == nil {
		t.Error("--shard with --print-spec")
	}
}
