package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest returns the SHA-256 of v as JSON, in hex: it identifies a configuration.
// It panics if v cannot be marshaled.
func Digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("stream: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ShortDigest is the first 12 digits of a digest, as shown to users.
func ShortDigest(digest string) string { return digest[:min(12, len(digest))] }
