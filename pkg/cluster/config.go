// Package cluster is the configuration of a simulated cluster. It reads cluster
// files, applies overrides and fills in what follows from the known models and
// GPUs.
package cluster

import (
	"blis/pkg/hardware"
	"blis/pkg/policy"
)

// Config is the configuration of a run in the form of a cluster file.
type Config struct {
	Version      int           `yaml:"version" json:"version"`
	Deployments  []Deployment  `yaml:"deployments" json:"deployments"`
	ControlPlane ControlPlane  `yaml:"control_plane" json:"control_plane"`
	Policies     policy.Bundle `yaml:"policies" json:"policies"`
}

// Deployment is a group of identical replicas of one model.
type Deployment struct {
	ID string `yaml:"id" json:"id"`
	// Model is the name that requests ask for. Its architecture is that of the
	// catalog's model of this name or, if set, of ModelConfig: the path of a Hugging
	// Face config.json, or another name in the catalog.
	Model       string  `yaml:"model" json:"model"`
	ModelConfig string  `yaml:"model_config" json:"model_config,omitempty"`
	GPU         string  `yaml:"gpu" json:"gpu,omitempty"`
	Replicas    int     `yaml:"replicas" json:"replicas"`
	Engine      Engine  `yaml:"engine" json:"engine"`
	Latency     Latency `yaml:"latency" json:"latency"`
	// Derived lists the derived values among these, nil if there are none.
	Derived *Derived `yaml:"derived" json:"derived,omitempty"`
	// Computed follows from the rest. Files may contain it, since --print-config
	// prints it: it is read as Shown and recomputed.
	Computed *Computed      `yaml:"-" json:"computed,omitempty"`
	Printed  map[string]any `yaml:"computed" json:"-"`
}

// Latency names a latency model and its coefficients, in µs and µs per token. The
// default model is table if there is a table, else linear if there is a beta_us,
// else the measured coefficients for the model on the GPU or, if there are none,
// roofline.
type Latency struct {
	hardware.Latency `yaml:",inline"`
	// From is a file of coefficients that blis-calibrate wrote, relative to the folder
	// of the cluster file. The deployment uses those for its model, GPU and
	// parallelism. From is empty once they are loaded.
	From string `yaml:"from" json:"from,omitempty"`
	// Source says where the coefficients come from unless the file itself sets them.
	Source string `yaml:"source" json:"source,omitempty"`
	// Range is the range of measured inputs; nil if unknown.
	Range  *hardware.Range `yaml:"range" json:"range,omitempty"`
	Jitter Jitter          `yaml:"jitter" json:"jitter"`
}

// Jitter multiplies the time of each step by a lognormal factor of mean 1.
type Jitter struct {
	// CV is the coefficient of variation; 0 disables jitter.
	CV float64 `yaml:"cv" json:"cv"`
}

// UnmarshalYAML decodes a deployment over the defaults.
func (d *Deployment) UnmarshalYAML(decode func(any) error) error {
	type plain Deployment
	*d = Deployment{Replicas: 1, Engine: defaultEngine()}
	return decode((*plain)(d))
}
