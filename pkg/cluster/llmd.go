package cluster

import (
	"encoding/json"

	"blis/pkg/llmd"
	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// useRouter replaces what a configuration of llm-d's router says: admission, routing and flow control. Other policies
// are those of the cluster file: they are not the router's.
func (s *source) useRouter(file *strictyaml.Doc, o Options) error {
	r, warnings, err := llmd.Read(file)
	if err != nil {
		return err
	}
	if o.Warn != nil {
		for _, w := range warnings {
			o.Warn(o.PolicyFile + ": " + w)
		}
	}
	if r.Admission == nil {
		r.Admission = &policy.Spec{Type: "always-admit"}
	}
	s.doc.Delete("control_plane.flow_control")
	for _, v := range []struct {
		path  string
		value any
	}{{"policies.admission", r.Admission}, {"policies.routing", r.Routing},
		{"control_plane.flow_control", flowControlOf(r.Flow)}} {
		text, err := json.Marshal(v.value)
		if err != nil {
			return err
		}
		if string(text) == "null" {
			continue
		}
		by := &strictyaml.Setting{Path: v.path, Value: string(text), File: o.PolicyFile, Line: 1, Col: 1}
		if err := s.doc.Set(new(Config), v.path, by.Value, by); err != nil {
			return by.Errorf("%v", err)
		}
	}
	return nil
}

// flowControlOf returns the flow control of a router, nil if it has none.
func flowControlOf(f *llmd.Flow) *FlowControl {
	if f == nil {
		return nil
	}
	return &FlowControl{Order: f.Order, Fairness: f.Fairness, PriorityBands: true, Capacity: f.Capacity, TTLUS: f.TTLUS,
		Saturation: 1, Detector: &f.Detector, UsageLimit: f.UsageLimit}
}
