package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"

	"blis/pkg/strictyaml"
)

// Parse is Load of a cluster file that is the text, called name in errors.
func Parse(name string, text []byte, o Options) (*Config, error) {
	doc, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return resolve(doc, ".", o)
}

// Restore reads a configuration that is resolved already, as the headers of runs
// have it. Nothing is looked up or computed again, so that it is the same where
// models and GPUs are not known, or known better by now. name is what errors call it.
func Restore(name string, text []byte) (*Config, error) {
	doc, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	if err := doc.Decode(c); err != nil {
		return nil, err
	}
	by := &said{config: c, file: doc}
	if err := c.validate(by.fault); err != nil {
		return nil, err
	}
	if _, err := c.tryPolicies(by); err != nil {
		return nil, err
	}
	for i := range c.Deployments {
		if err := c.Deployments[i].restore(fmt.Sprintf("deployments[%d]", i), by.fault); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// restore takes what was computed as it is shown, and checks what of it sizes the
// simulation.
func (d *Deployment) restore(at string, fault fault) error {
	if err := d.Engine.validate(at+".engine", fault); err != nil {
		return err
	}
	shown, err := json.Marshal(d.Shown)
	if err != nil {
		return fault(at+".computed", "%v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(shown))
	dec.DisallowUnknownFields()
	d.Computed, d.Shown = new(Computed), nil
	if err := dec.Decode(d.Computed); err != nil {
		return fault(at+".computed", "%v", err)
	}
	k := d.Computed
	if most := maxCacheTokens / d.Engine.BlockSize / d.Engine.DataParallelSize; k.KVBlocks < 1 || k.KVBlocks > most {
		return fault(at+".computed.kv_blocks", "must be between 1 and %d, is %d", most, k.KVBlocks)
	}
	if w := k.Window; w != nil && (w.Tokens < 1 || w.Blocks < 0 || w.ExtraBlocks < 0) {
		return fault(at+".computed.window", "must be of at least one token and no less than 0 blocks")
	}
	if _, err := d.LatencyModel(); err != nil {
		return fault(at+".latency", "%v", err)
	}
	return nil
}
