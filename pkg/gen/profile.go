package gen

import "blis/pkg/dist"

// profiled is the arrivals of c, which stands at path, as the load profiles of
// the spec and of the client bend them: both multiply its rate. What was
// recorded is left as it is.
func (s *Spec) profiled(times *dist.Times, c *Client, path string, fault fault) (*dist.Times, error) {
	switch {
	case s.LoadProfile == nil && c.LoadProfile == nil:
		return times, nil
	case c.Arrival.IsTrace() && c.LoadProfile != nil:
		return nil, fault(path+".load_profile", "must not stand beside arrivals of a trace, which are as they were")
	case c.Arrival.IsTrace():
		return times, nil
	}
	if _, err := dist.NewWarp(s.LoadProfile); err != nil {
		return nil, inside("load_profile", err, fault)
	}
	warp, err := dist.NewWarp(s.LoadProfile, c.LoadProfile)
	if err != nil {
		return nil, inside(path+".load_profile", err, fault)
	}
	return times.In(warp), nil
}
