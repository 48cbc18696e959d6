package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"blis/pkg/stream"
)

// sharedSets are settings with every kind of control plane; the first is the default.
var sharedSets = []string{"", "routing.type=random", "routing={type: weighted}", "routing={type: dynamo-kv}",
	"control_plane.flow_control={order: priority}", "deployments.main.replicas=2",
	"deployments.main.latency.jitter.cv=0.1", "scheduler.type=priority-fcfs"}

// sharedOptions are options of runs at every trace level.
func sharedOptions() (all []Options) {
	for _, level := range stream.TraceLevels {
		all = append(all, Options{Trace: level, Plain: true, Version: stream.Version},
			Options{Trace: level, Plain: true, Seed: 7, Horizon: &Horizon{Time: 2e6}})
	}
	return append(all, Options{Trace: "decisions", Plain: true, ITL: true, Check: true})
}

// TestSharedWorkload runs many configurations at once on one workload in memory: each run has the bytes of a run
// on the stream, and an evaluation without a stream has its metrics.
func TestSharedWorkload(t *testing.T) {
	for _, text := range sharedWorkloads(t) {
		w, err := ReadWorkload(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for _, set := range sharedSets {
			for i, o := range sharedOptions() {
				if set != "" {
					o.Set = []string{set}
				}
				wait.Go(func() {
					if err := compareShared(w, text, o); err != nil {
						t.Errorf("%s, options %d: %v", set, i, err)
					}
				})
			}
		}
		wait.Wait()
	}
}

// sharedWorkloads are a workload of requests and one of sessions without a header.
func sharedWorkloads(t *testing.T) [][]byte {
	t.Helper()
	var sessions strings.Builder
	for i := range 20 {
		fmt.Fprintf(&sessions, `{"kind":"session","id":"s%d","arrival_us":%d,"tenant":"t%d","steps":[`+
			`{"id":"a","input_tokens":%d,"prompt":[{"id":"p%d","tokens":300}],"output_tokens":40},`+
			`{"id":"b","after":[0],"input_tokens":%[4]d,"prompt":[{"id":"p%[5]d","tokens":390}],"output_tokens":30,`+
			`"delay_us":50000}]}`+"\n", i, i*200_000, i%3, 400+16*i, i%5)
	}
	return [][]byte{benchWorkload(80, 30), []byte(sessions.String())}
}

// compareShared compares a run on w with one on its stream.
func compareShared(w *Workload, text []byte, o Options) error {
	var single, shared bytes.Buffer
	if err := Run(context.Background(), bytes.NewReader(text), &single, o); err != nil {
		return err
	}
	c, err := o.LoadCluster()
	if err != nil {
		return err
	}
	run := w.Case(c, o)
	record, err := run.Write(context.Background(), &shared)
	if err != nil {
		return err
	}
	if !bytes.Equal(single.Bytes(), shared.Bytes()) {
		return fmt.Errorf("the runs differ: %d and %d bytes", single.Len(), shared.Len())
	}
	evaluated, err := run.Evaluate(context.Background())
	if err != nil {
		return err
	}
	x, _ := json.Marshal(record)
	if y, _ := json.Marshal(evaluated); !bytes.Equal(x, y) {
		return fmt.Errorf("the metrics differ: %s and %s", x, y)
	}
	if !bytes.Contains(single.Bytes(), x[1:]) {
		return fmt.Errorf("the run does not have the metrics %s", x)
	}
	return nil
}

// BenchmarkEvaluate compares evaluations of 2,000 requests: each reading the stream and writing the run, and
// without both on a workload in memory.
func BenchmarkEvaluate(b *testing.B) {
	text := benchWorkload(2000, 4*22)
	w, err := ReadWorkload(bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	file := benchCluster(b, 4, "prefix")
	for _, level := range stream.TraceLevels[:2] {
		o := Options{Cluster: file, Trace: level}
		measure := func(name string, run func() error) {
			b.Run(level+"/"+name, func(b *testing.B) {
				before := cpuTime()
				for b.Loop() {
					if err := run(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(cpuTime()-before)*1e3/float64(b.N), "cpu-ms/run")
			})
		}
		measure("stream", func() error { return Run(context.Background(), bytes.NewReader(text), io.Discard, o) })
		measure("memory", func() error {
			c, err := o.LoadCluster()
			if err != nil {
				return err
			}
			_, err = w.Case(c, o).Evaluate(context.Background())
			return err
		})
	}
}
