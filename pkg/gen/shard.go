package gen

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"blis/pkg/stream"
)

// Shard is a part of a workload. The zero value is the whole workload.
type Shard struct{ part, of int64 }

// UnmarshalText reads "2/4".
func (s *Shard) UnmarshalText(text []byte) error {
	a, b, ok := strings.Cut(string(text), "/")
	part, errA := strconv.ParseInt(a, 10, 32)
	of, errB := strconv.ParseInt(b, 10, 32)
	if !ok || errA != nil || errB != nil || part < 1 || part > of {
		return fmt.Errorf("is %q; must be K/N with K from 1 to N, such as 1/4", text)
	}
	*s = Shard{part, of}
	return nil
}

// shard is what the header states, nil if the workload is whole.
func (o *Options) shard() *stream.Shard {
	if o.Shard == (Shard{}) {
		return nil
	}
	return &stream.Shard{Part: o.Shard.part, Of: o.Shard.of, By: cmp.Or(o.ShardBy, stream.ShardKeys[0])}
}

// inShard reports whether a is in the part of --shard. The part is the first eight bytes of the SHA-256 of the name of
// the session or tenant, as a big-endian number, modulo the number of parts, plus 1. A request without a session
// counts as one.
func (o *Options) inShard(a *stream.Arrival) bool {
	if o.Shard.of <= 1 {
		return true
	}
	name, tenant := cmp.Or(a.Request.Session, a.Request.ID), a.Request.Tenant
	if a.IsSession {
		name, tenant = a.Session.ID, a.Session.Tenant
	}
	if o.ShardBy == "tenant" {
		name = tenant
	}
	hash := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(hash[:8])%uint64(o.Shard.of) == uint64(o.Shard.part-1)
}
