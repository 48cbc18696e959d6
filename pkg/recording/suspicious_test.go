package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Duplicate rows and probable ms in columns of seconds are reported with the right column names;
// plausible tables are not.
func TestSuspiciousTables(t *testing.T) {
	table := func(ttft, e2e string, scale float64, again int) string {
		text := fmt.Sprintf("arrival_s,input_tokens,output_tokens,%s,%s\n", ttft, e2e)
		for i := range 100 + again {
			i %= 100
			text += fmt.Sprintf("%d,%d,21,%g,%g\n", i, 100+i, scale*0.1, scale*(0.3+float64(i)/1e3))
		}
		return text
	}
	for _, c := range []struct{ name, text, want string }{
		{"plain", table("ttft_s", "e2e_s", 1, 0), ""},
		{"one row again", table("ttft_s", "e2e_s", 1, 1), ""},
		{"duplicates", table("ttft_s", "e2e_s", 1, 100),
			"100 of 200 requests duplicate the arrival, lengths and times of another"},
		{"ms as s", table("ttft_s", "e2e_s", 1000, 0),
			"half of the requests take 12.47 s per token after the first or more; if the times are in ms, name the " +
				"columns ttft_ms and e2e_ms"},
		{"ms as s of another name", table("ttft", "latency_s", 1000, 0), "name the columns ttft_ms and latency_ms"},
		{"slow, and possible", table("ttft_s", "e2e_s", 50, 0), ""},
		{"ms", table("ttft_ms", "e2e_ms", 1000, 0), ""},
		{"outputs of one token, ms as s", strings.ReplaceAll(table("ttft_s", "e2e_s", 12000, 0), ",21,", ",1,"),
			"half of the requests take 4194 s per response or more"},
	} {
		name := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(t.Context(), name, "")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(r.Runs[0].Warnings, "; "); !strings.Contains(got, c.want) ||
			(got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
