package gen

import (
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// Multimodal says what prompts hold beside text. Only the number of tokens
// matters: they are part of the prompt, behind the text, and shared with no other
// prompt.
type Multimodal struct {
	// ImageTokens are those of one image, ImagesPerRequest how many there are;
	// absent, one. So it is with the others.
	ImageTokens      *dist.Spec `yaml:"image_tokens" json:"image_tokens,omitempty"`
	ImagesPerRequest *dist.Spec `yaml:"images_per_request" json:"images_per_request,omitempty"`
	AudioTokens      *dist.Spec `yaml:"audio_tokens" json:"audio_tokens,omitempty"`
	AudiosPerRequest *dist.Spec `yaml:"audios_per_request" json:"audios_per_request,omitempty"`
	VideoTokens      *dist.Spec `yaml:"video_tokens" json:"video_tokens,omitempty"`
	VideosPerRequest *dist.Spec `yaml:"videos_per_request" json:"videos_per_request,omitempty"`
}

// maxMedia bounds the images, audios and videos of one request, of each kind.
const maxMedia = 10_000

// media adds the tokens of images, audios and videos.
type media []medium

// medium is one kind of them. number is nil for one in each request.
type medium struct {
	number, tokens *dist.Length
	stream         *rand.Rand
}

// newMedia checks what c, whose Multimodal stands at path, says of it.
func newMedia(seed uint64, c *Client, path string, fault fault) (media, error) {
	m := c.Multimodal
	var all media
	for _, kind := range []struct {
		tokensName, numberName string
		tokens, number         *dist.Spec
	}{
		{"image_tokens", "images_per_request", m.ImageTokens, m.ImagesPerRequest},
		{"audio_tokens", "audios_per_request", m.AudioTokens, m.AudiosPerRequest},
		{"video_tokens", "videos_per_request", m.VideoTokens, m.VideosPerRequest},
	} {
		if kind.tokens == nil {
			if kind.number != nil {
				return nil, fault(path+"."+kind.tokensName, "must be given beside %s", kind.numberName)
			}
			continue
		}
		one := medium{stream: c.stream(seed, kind.tokensName)}
		var err error
		if one.tokens, err = kind.tokens.Length(); err != nil {
			return nil, inside(path+"."+kind.tokensName, err, fault)
		}
		if kind.number != nil {
			if one.number, err = kind.number.Count(); err != nil {
				return nil, inside(path+"."+kind.numberName, err, fault)
			}
			if most := one.number.Quantile(1); most > maxMedia {
				return nil, fault(path+"."+kind.numberName, "must be at most %d, can be %d: give it a max", maxMedia, most)
			}
		}
		all = append(all, one)
	}
	if all == nil {
		return nil, fault(path, "must have one of image_tokens, audio_tokens and video_tokens")
	}
	return all, nil
}

func (m media) add(a *stream.Arrival, _ *rand.Rand) {
	for i := range m {
		a.Request.InputTokens = min(a.Request.InputTokens+m[i].draw(), maxTokens)
	}
}

// draw is the tokens of all that one request has of the kind.
func (m *medium) draw() int64 {
	n := int64(1)
	if m.number != nil {
		n = m.number.Draw(m.stream)
	}
	sum := int64(0)
	for range n {
		sum += m.tokens.Draw(m.stream)
	}
	return sum
}
