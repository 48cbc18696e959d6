package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest identifies a configuration: the SHA-256 of v as JSON, in hex. v must be
// something that JSON can say.
func Digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("record: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
