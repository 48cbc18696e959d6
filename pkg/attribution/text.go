package attribution

import "strings"

// textStore keeps short strings in a few large pieces of memory, which takes less of it and of the time of the garbage
// collector than a piece for each.
type textStore struct{ piece *strings.Builder }

// textPiece is the size of a piece in bytes.
const textPiece = 1 << 16

// keep returns a copy of a text.
func (t *textStore) keep(s []byte) string {
	if t.piece == nil || t.piece.Cap()-t.piece.Len() < len(s) {
		t.piece = &strings.Builder{}
		t.piece.Grow(max(textPiece, len(s)))
	}
	from := t.piece.Len()
	t.piece.Write(s)
	return t.piece.String()[from:]
}
