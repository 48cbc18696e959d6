package latency

// Encoder is the time of the encoder of images, audio and video.
type Encoder interface {
	// Item is how long the encoder takes for an item with this many tokens in a prompt, in µs.
	Item(tokens int64) float64
}

// LinearEncoder takes ItemUS for each item and TokenUS for each of its tokens.
type LinearEncoder struct{ ItemUS, TokenUS float64 }

func (l LinearEncoder) Item(tokens int64) float64 {
	return l.ItemUS + float64(l.TokenUS*float64(tokens))
}
