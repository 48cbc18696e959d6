// Package cluster is the configuration of a simulated cluster: what cluster
// files say, and what follows from it and from what is known of models and
// GPUs.
package cluster

import (
	"blis/pkg/hardware"
	"blis/pkg/policy"
)

// Config is the configuration of a run, as cluster files give it.
type Config struct {
	Version      int           `yaml:"version" json:"version"`
	Deployments  []Deployment  `yaml:"deployments" json:"deployments"`
	ControlPlane ControlPlane  `yaml:"control_plane" json:"control_plane"`
	Policies     policy.Bundle `yaml:"policies" json:"policies"`
}

// Deployment is a number of equal replicas of one model.
type Deployment struct {
	ID string `yaml:"id" json:"id"`
	// Model is the name that requests ask for. What is known of it is that of the
	// catalogue's model of this name or, if it is given, of ModelConfig: the path
	// of a Hugging Face config.json, or another name in the catalogue.
	Model       string  `yaml:"model" json:"model"`
	ModelConfig string  `yaml:"model_config" json:"model_config,omitempty"`
	GPU         string  `yaml:"gpu" json:"gpu,omitempty"`
	Replicas    int     `yaml:"replicas" json:"replicas"`
	Engine      Engine  `yaml:"engine" json:"engine"`
	Latency     Latency `yaml:"latency" json:"latency"`
	// Derived is what of this follows from the rest, nil if nothing does.
	Derived *Derived `yaml:"derived" json:"derived,omitempty"`
	// Computed is what follows from the rest. Files may have it, since
	// --print-config shows it: it is read as Shown, and computed anew.
	Computed *Computed      `yaml:"-" json:"computed,omitempty"`
	Shown    map[string]any `yaml:"computed" json:"-"`
}

// Latency names a latency model and its coefficients, in µs and µs a token.
// Without a model it is linear if there is a beta_us and table if there is a
// table (of both, table: the other has then no effect); with neither, what was
// measured for the model on the GPU or, where nothing was, roofline.
type Latency struct {
	hardware.Latency `yaml:",inline"`
	// From is a file of coefficients, as blis-calibrate writes them, by its path from
	// the folder of the cluster file: those for the deployment's model, GPU and
	// parallelism are taken. It is empty once they are.
	From string `yaml:"from" json:"from,omitempty"`
	// Source says where it is from, if not from whoever wrote the file.
	Source string `yaml:"source" json:"source,omitempty"`
	// Range is what it was measured for; nil if that is not known.
	Range  *hardware.Range `yaml:"range" json:"range,omitempty"`
	Jitter Jitter          `yaml:"jitter" json:"jitter"`
}

// Jitter multiplies the time of each step by a lognormal of mean 1.
type Jitter struct {
	// CV is its coefficient of variation; 0 is no jitter.
	CV float64 `yaml:"cv" json:"cv"`
}

// UnmarshalYAML decodes a deployment over the defaults of what it leaves out.
func (d *Deployment) UnmarshalYAML(decode func(any) error) error {
	type plain Deployment
	*d = Deployment{Replicas: 1, Engine: defaultEngine()}
	return decode((*plain)(d))
}
