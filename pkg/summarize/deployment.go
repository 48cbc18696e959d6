package summarize

import (
	"encoding/json"

	"blis/pkg/cluster"
	"blis/pkg/deploy"
)

// Deployment is a simulated configuration for real servers and routers, by target: llm-d, vllm, dynamo. Each target
// has a file, or an error that names the setting that it does not have. Both are empty for recordings.
type Deployment struct {
	Files  map[string]string `json:"files"`
	Errors map[string]string `json:"errors"`
}

// export adds the configuration of a run.
func (d *Deployment) export(x *runDoc) {
	if x.header == nil || x.header.Run == nil || x.header.Run.Config == nil {
		return
	}
	text, err := json.Marshal(x.header.Run.Config)
	var c *cluster.Config
	if err == nil {
		c, err = cluster.Restore("the configuration of "+x.name, text)
	}
	for _, target := range deploy.Targets {
		if err != nil {
			d.Errors[target.Name] = err.Error()
			continue
		}
		if file, err := deploy.Export(target.Name, c); err != nil {
			d.Errors[target.Name] = err.Error()
		} else {
			d.Files[target.Name] = file
		}
	}
}
