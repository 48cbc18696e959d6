package policy

import (
	_ "embed"
	"strings"
)

// The places of plugins of llm-d-router in BLIS.
const (
	InProfile     = "profile"       // routing of type llm-d
	InAdmission   = "admission"     // an admission policy
	InFlowControl = "flow_control"  // control_plane.flow_control
	Implied       = "implied"       // always simulated, with its defaults
	NotSimulated  = "not simulated" // for a reason
)

// LLMDPlugin is a plugin that llm-d-router v0.10.0 registers: what it is for llm-d, such as scorer or parser, its
// place here, and what it is there or why it has none.
type LLMDPlugin struct{ Name, Kind, Place, Note string }

//go:embed llm-d-router-0.10.0.tsv
var llmdList string

// LLMDPlugins returns all plugins by name.
func LLMDPlugins() map[string]LLMDPlugin {
	all := map[string]LLMDPlugin{}
	for line := range strings.Lines(llmdList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "")
		all[f[0]] = LLMDPlugin{f[0], f[1], f[2], f[3]}
	}
	return all
}
