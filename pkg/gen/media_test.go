package gen

import (
	"strings"
	"testing"

	"blis/pkg/stream"
)

// TestEncodedMedia: images are segments before the text, and the k-th common one is as often as Zipf's law says.
func TestEncodedMedia(t *testing.T) {
	plain := withNeighbor(t, "", "")
	list := withNeighbor(t, "",
		"multimodal: {image_tokens: {type: uniform, params: {min: 5, max: 90}}, images_per_request: "+
			"{type: uniform, params: {min: 0, max: 4}}, encode: true, common: {probability: 0.5, count: 2, zipf: 1}}, ")
	counts, lengths := map[string]int{}, map[string]int64{}
	common, own := 0, 0
	for i, r := range list {
		added := int64(0)
		for _, s := range r.Prompt[len(plain[i].Prompt):] {
			if s.Media != stream.MediaImage {
				t.Fatalf("%+v is no image", s)
			}
			added += s.Tokens
			if counts[s.ID]++; counts[s.ID] > 1 && lengths[s.ID] != s.Tokens {
				t.Fatalf("%s has %d and %d tokens", s.ID, lengths[s.ID], s.Tokens)
			}
			lengths[s.ID] = s.Tokens
			if strings.Contains(s.ID, ".own-") {
				own++
			} else {
				common++
			}
		}
		if r.InputTokens-plain[i].InputTokens != added {
			t.Fatalf("%d tokens were added for images of %d", r.InputTokens-plain[i].InputTokens, added)
		}
	}
	if share := float64(common) / float64(common+own); share < 0.45 || share > 0.55 {
		t.Errorf("a share of %g is common, want 0.5", share)
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	if share := float64(most) / float64(common); share < 0.6 || share > 0.73 {
		t.Errorf("the most popular image has a share of %g, want 2/3", share)
	}
}

// TestMediaOfConversations: each turn has an image of its own before its text, and later turns that extend it keep it.
func TestMediaOfConversations(t *testing.T) {
	const image = "    multimodal: {image_tokens: {type: constant, params: {value: 7}}, encode: true}\n"
	for growth, kept := range map[string]func(k int64) int64{
		"linear":    func(k int64) int64 { return k + 1 },
		"sublinear": func(k int64) int64 { return min(k, 1) - max(0, min(k-1, 1)) + 1 }} {
		spec := chatSpec("turn_distribution: {type: constant, params: {value: 4}}, context_growth: " + growth)
		plain := generateSessions(t, spec, Options{Spec: "-", Requests: 3})
		for i, s := range generateSessions(t, strings.TrimRight(spec, "\n")+"\n"+image, Options{Spec: "-",
			Requests: 3}) {
			for k := range s.Steps {
				before := plain[i].Steps[k].InputTokens
				images := int64(0)
				tokens := int64(0)
				prompt := s.AppendPrompt(nil, k)
				for _, x := range prompt {
					if tokens += x.Tokens; x.Media != "" {
						images++
					}
				}
				if want := kept(int64(k)); images != want || s.Steps[k].InputTokens != before+7*want ||
					tokens > s.Steps[k].InputTokens {
					t.Errorf("%s: turn %d of %d tokens has %d images, %d tokens in segments, want %d images", growth, k,
						s.Steps[k].InputTokens, images, tokens, want)
				}
				if own := prompt[len(prompt)-2]; own.Media != stream.MediaImage ||
					own.ID != s.ID+"/"+s.Steps[k].ID+".image-1" {
					t.Errorf("%s: turn %d has %+v before its text", growth, k, own)
				}
			}
		}
	}
}
