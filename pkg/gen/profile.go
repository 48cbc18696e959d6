package gen

import "blis/pkg/dist"

// applyProfiles applies the load profiles of the spec and of the client c at path to its arrivals:
// the multipliers of both are multiplied. Arrivals from a trace stay unchanged.
func (s *Spec) applyProfiles(times *dist.Times, c *Client, path string, errorf errorFunc) (*dist.Times, error) {
	switch {
	case s.LoadProfile == nil && c.LoadProfile == nil:
		return times, nil
	case c.Arrival.IsTrace() && c.LoadProfile != nil:
		return nil, errorf(path+".load_profile", "cannot be combined with arrivals from a trace, which are "+
			"replayed unchanged")
	case c.Arrival.IsTrace():
		return times, nil
	}
	if _, err := dist.NewWarp(s.LoadProfile); err != nil {
		return nil, paramError("load_profile", err, errorf)
	}
	warp, err := dist.NewWarp(s.LoadProfile, c.LoadProfile)
	if err != nil {
		return nil, paramError(path+".load_profile", err, errorf)
	}
	return times.Warped(warp), nil
}
