package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// Multimodal adds the tokens of images, audio and video to prompts. Without Encode only their number matters: they
// follow the text and are shared with no other prompt.
type Multimodal struct {
	ImageTokens      *dist.Spec `yaml:"image_tokens" json:"image_tokens,omitempty"`
	ImagesPerRequest *dist.Spec `yaml:"images_per_request" json:"images_per_request,omitempty"`
	AudioTokens      *dist.Spec `yaml:"audio_tokens" json:"audio_tokens,omitempty"`
	AudiosPerRequest *dist.Spec `yaml:"audios_per_request" json:"audios_per_request,omitempty"`
	VideoTokens      *dist.Spec `yaml:"video_tokens" json:"video_tokens,omitempty"`
	VideosPerRequest *dist.Spec `yaml:"videos_per_request" json:"videos_per_request,omitempty"`
	// Encode makes them segments that engines encode, before the text of the request or of a turn of a conversation.
	Encode bool `yaml:"encode" json:"encode,omitempty"`
	// Common are media that many requests have.
	Common *CommonMedia `yaml:"common" json:"common,omitempty"`
}

// CommonMedia are Count items of each kind. With this Probability an item is one of them, the k-th one in proportion
// to 1/k^Zipf.
type CommonMedia struct {
	Probability float64 `yaml:"probability" json:"probability"`
	Count       int64   `yaml:"count" json:"count"`
	Zipf        float64 `yaml:"zipf" json:"zipf"`
}

const (
	// maxMedia bounds the images, audio clips or videos of one request.
	maxMedia  = 10_000
	maxCommon = 1_000_000
)

// media adds the tokens of all media to a prompt.
type media struct {
	client string
	kinds  []medium
	encode bool
	common *CommonMedia
	// popularity is that of the common ones.
	popularity popularity
	// own counts the requests of the client, which have no id yet.
	own int64
}

// medium is one kind of media. A nil number means one per request.
type medium struct {
	name           string
	number, tokens *dist.Length
	stream         *rand.Rand
	lengths        []int64 // of the common ones
}

// newMedia validates the Multimodal of c.
func newMedia(seed uint64, c *Client, singleRequests bool, at field) *media {
	m := c.Multimodal
	all := &media{client: c.ID, encode: m.Encode, common: m.Common}
	for _, kind := range []struct {
		name, tokensName, numberName string
		tokens, number               *dist.Spec
	}{
		{stream.MediaImage, "image_tokens", "images_per_request", m.ImageTokens, m.ImagesPerRequest},
		{stream.MediaAudio, "audio_tokens", "audios_per_request", m.AudioTokens, m.AudiosPerRequest},
		{stream.MediaVideo, "video_tokens", "videos_per_request", m.VideoTokens, m.VideosPerRequest},
	} {
		if kind.tokens == nil {
			if kind.number != nil {
				at.fail(kind.tokensName, "must be given with %s", kind.numberName)
			}
			continue
		}
		one := medium{name: kind.name, stream: c.stream(seed, kind.tokensName),
			tokens: at.length(kind.tokensName, kind.tokens),
			number: at.distribution(kind.numberName, kind.number, dist.Spec.Count)}
		if one.number != nil {
			if most := one.number.Quantile(1); most > maxMedia {
				at.fail(kind.numberName, "must be at most %d, can be %d: give it a max", maxMedia, most)
			}
		}
		all.kinds = append(all.kinds, one)
	}
	if all.kinds == nil {
		at.fail("", "must have one of image_tokens, audio_tokens and video_tokens")
	}
	switch {
	case singleRequests:
	case !m.Encode:
		at.fail("", "is only for clients that send single requests")
	case c.MultiTurn == nil:
		at.fail("encode", "is only for clients that send single requests or have multi_turn")
	}
	all.addCommon(seed, c, at)
	return all
}

// addCommon validates the common media and draws their lengths.
func (m *media) addCommon(seed uint64, c *Client, at field) {
	x := m.common
	if x == nil {
		return
	}
	if !m.encode {
		at.fail("common", "must not be given without encode")
	}
	of := at.at("common")
	between(of, "probability", x.Probability, 0, 1)
	between(of, "count", x.Count, 1, maxCommon)
	between(of, "zipf", x.Zipf, 0, maxZipf)
	if at.err != nil || of.err != nil {
		return
	}
	m.popularity = newPopularity(x.Count, x.Zipf)
	for i := range m.kinds {
		kind := &m.kinds[i]
		lengths := c.stream(seed, "common "+kind.name)
		for range x.Count {
			kind.lengths = append(kind.lengths, kind.tokens.Draw(lengths))
		}
	}
}

// decorate adds media to a request, or to each turn of a conversation.
func (m *media) decorate(a *stream.Arrival, r *rand.Rand) {
	switch {
	case a.IsSession:
		m.addToTurns(&a.Session, r)
	case m.encode:
		q := &a.Request
		m.own++
		own := fmt.Sprintf("%s.own-%d", m.client, m.own)
		for i := range m.kinds {
			q.Prompt = m.appendTo(q.Prompt, &m.kinds[i], own, &q.InputTokens, m.kinds[i].stream, r)
		}
	default:
		for i := range m.kinds {
			a.Request.InputTokens = min(a.Request.InputTokens+m.kinds[i].draw(), maxTokens)
		}
	}
}

// addToTurns puts media before the new text of each turn. Turns that extend it have them, too.
func (m *media) addToTurns(s *stream.Session, r *rand.Rand) {
	added := make([]int64, len(s.Steps))
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Tool != "" {
			continue
		}
		before := step.InputTokens
		if from := step.Extends; !from.IsZero() {
			step.InputTokens = min(step.InputTokens+added[from], maxTokens)
		}
		var items []stream.Segment
		for k := range m.kinds {
			items = m.appendTo(items, &m.kinds[k], step.RequestID(s.ID), &step.InputTokens, r, r)
		}
		step.Prompt = slices.Insert(step.Prompt, len(step.Prompt)-1, items...)
		added[i] = step.InputTokens - before
	}
}

// appendTo appends items of one kind to a prompt of this many tokens. lengths has the random numbers of their number
// and lengths, choices those of their contents.
func (m *media) appendTo(prompt []stream.Segment, kind *medium, request string, input *int64,
	lengths, choices *rand.Rand) []stream.Segment {
	n := int64(1)
	if kind.number != nil {
		n = kind.number.Draw(lengths)
	}
	for k := range n {
		s := stream.Segment{ID: fmt.Sprintf("%s.%s-%d", request, kind.name, k+1), Tokens: kind.tokens.Draw(lengths),
			Media: kind.name}
		if x := m.common; x != nil && choices.Float64() < x.Probability {
			at := m.popularity.draw(choices)
			s.ID, s.Tokens = fmt.Sprintf("%s.%s-%d", m.client, kind.name, at+1), kind.lengths[at]
		}
		if *input+s.Tokens > maxTokens {
			break
		}
		*input += s.Tokens
		prompt = append(prompt, s)
	}
	return prompt
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
