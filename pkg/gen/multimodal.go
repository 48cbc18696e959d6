package gen

import (
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// Multimodal adds the tokens of images, audio and video to prompts. Only their number matters: they
// follow the text and are shared with no other prompt.
type Multimodal struct {
	ImageTokens      *dist.Spec `yaml:"image_tokens" json:"image_tokens,omitempty"`
	ImagesPerRequest *dist.Spec `yaml:"images_per_request" json:"images_per_request,omitempty"`
	AudioTokens      *dist.Spec `yaml:"audio_tokens" json:"audio_tokens,omitempty"`
	AudiosPerRequest *dist.Spec `yaml:"audios_per_request" json:"audios_per_request,omitempty"`
	VideoTokens      *dist.Spec `yaml:"video_tokens" json:"video_tokens,omitempty"`
	VideosPerRequest *dist.Spec `yaml:"videos_per_request" json:"videos_per_request,omitempty"`
}

// maxMedia bounds the images, audio clips or videos of one request.
const maxMedia = 10_000

// media adds the tokens of all media to a prompt.
type media []medium

// medium is one kind of media. A nil number means one per request.
type medium struct {
	number, tokens *dist.Length
	stream         *rand.Rand
}

// newMedia validates the Multimodal of c, which is at path.
func newMedia(seed uint64, c *Client, path string, errorf errorFunc) (media, error) {
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
				return nil, errorf(path+"."+kind.tokensName, "must be given with %s", kind.numberName)
			}
			continue
		}
		one := medium{stream: c.stream(seed, kind.tokensName)}
		var err error
		if one.tokens, err = kind.tokens.Length(); err != nil {
			return nil, paramError(path+"."+kind.tokensName, err, errorf)
		}
		if kind.number != nil {
			if one.number, err = kind.number.Count(); err != nil {
				return nil, paramError(path+"."+kind.numberName, err, errorf)
			}
			if most := one.number.Quantile(1); most > maxMedia {
				return nil, errorf(path+"."+kind.numberName, "must be at most %d, can be %d: give it a max", maxMedia,
					most)
			}
		}
		all = append(all, one)
	}
	if all == nil {
		return nil, errorf(path, "must have one of image_tokens, audio_tokens and video_tokens")
	}
	return all, nil
}

func (m media) decorate(a *stream.Arrival, _ *rand.Rand) {
	for i := range m {
		a.Request.InputTokens = min(a.Request.InputTokens+m[i].draw(), maxTokens)
	}
}

// draw returns the tokens of all media of one kind in a request.
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
