package cluster

import (
	"bytes"
	"encoding/json"

	"blis/pkg/strictyaml"
)

// Parse is Load of a cluster file with this text; errors use name as its name.
func Parse(name string, text []byte, o Options) (*Config, error) {
	doc, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return resolve(doc, ".", o)
}

// Restore reads a configuration that is already resolved, from the header of a
// run. It looks up and computes nothing, so the result is the same where models
// and GPUs are unknown or have changed. Errors use name as the file name.
func Restore(name string, text []byte) (*Config, error) {
	doc, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	if err := doc.Decode(c); err != nil {
		return nil, err
	}
	if err := c.validate(doc.Errorf); err != nil {
		return nil, err
	}
	if _, err := c.validatePolicies(&source{doc: doc}); err != nil {
		return nil, err
	}
	for i := range c.Deployments {
		if err := c.Deployments[i].restore(deploymentPath(i), doc.Errorf); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// restore decodes the printed Computed and checks the values that size the
// simulation.
func (d *Deployment) restore(at string, errorf pathErrorf) error {
	if err := d.Engine.validate(at+".engine", errorf); err != nil {
		return err
	}
	data, err := json.Marshal(d.Printed)
	if err != nil {
		return errorf(at+".computed", "%v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	d.Computed, d.Printed = new(Computed), nil
	if err := dec.Decode(d.Computed); err != nil {
		return errorf(at+".computed", "%v", err)
	}
	k := d.Computed
	if most := maxCacheTokens / d.Engine.BlockSize / d.Engine.DataParallelSize; k.KVBlocks < 1 || k.KVBlocks > most {
		return errorf(at+".computed.kv_blocks", "must be between 1 and %d, is %d", most, k.KVBlocks)
	}
	if w := k.Window; w != nil && (w.Tokens < 1 || w.Blocks < 0 || w.ExtraBlocks < 0) {
		return errorf(at+".computed.window", "must have at least 1 token and no negative number of blocks")
	}
	if _, err := d.LatencyModel(); err != nil {
		return errorf(at+".latency", "%v", err)
	}
	return nil
}
