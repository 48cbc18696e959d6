package llmtext

// Tokens estimates how many tokens a language model makes of text. It approximates the
// vocabularies cl100k and o200k of OpenAI: one token each for up to five letters, three
// digits, a punctuation mark, a line feed or several spaces; a single space belongs to the
// token after it. It then adds 4 %. On 80 summary texts (20 runs, four strategies) the
// estimate was 0 to 14 % above either vocabulary; other models count differently. A real
// tokenizer would make the program a third larger.
func Tokens(text []byte) int {
	n := 0
	for i := 0; i < len(text); {
		k := kindOf(text[i])
		j := i + 1
		for j < len(text) && kindOf(text[j]) == k && k != sign {
			j++
		}
		switch length := j - i; k {
		case letter:
			n += (length + 4) / 5
		case digit:
			n += (length + 2) / 3
		case space:
			n += min(length-1, 1)
		default:
			n++
		}
		i = j
	}
	return n + (n+24)/25
}

const (
	letter = iota
	digit
	space
	sign
)

func kindOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		return letter
	case '0' <= c && c <= '9':
		return digit
	case c == ' ':
		return space
	}
	return sign
}
