package trace

import (
	"strconv"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// bailian reads the traces of Qwen on Bailian
// (github.com/alibaba-edu/qwen-bailian-usagetraces-anon). Times are seconds and kept. Every block
// of 16 tokens has an id. The last block is partial and treated as unique to the request. The
// session is the chat in which the conversation began; the tenant is the type.
type bailian struct {
	hashedLines
	row bailianRow
	// roots maps chats to the first chat of their conversation, about 16 bytes per request.
	roots map[int64]int64
}

// bailianRow is one line; the pointers must be given. A negative parent means none.
type bailianRow struct {
	ChatID       *int64   `json:"chat_id"`
	ParentChatID *int64   `json:"parent_chat_id"`
	Timestamp    *float64 `json:"timestamp"` // s
	InputLength  *int64   `json:"input_length"`
	OutputLength *int64   `json:"output_length"`
	Type         string   `json:"type"`
	Turn         int64    `json:"turn"` // from 1
	HashIDs      hashIDs  `json:"hash_ids"`
}

func openBailian(in Input, o Options) (Reader, error) {
	l, err := openHashedLines(in, o)
	return &bailian{hashedLines: l, roots: map[int64]int64{}}, err
}

func (b *bailian) Next(a *stream.Arrival) (float64, error) {
	b.row = bailianRow{HashIDs: b.row.HashIDs[:0]}
	row := &b.row
	if err := b.Read(row); err != nil {
		return 0, err
	}
	if err := b.Time("timestamp", *row.Timestamp, "s"); err != nil {
		return 0, err
	}
	r := request(a)
	r.InputTokens, r.OutputTokens = *row.InputLength, *row.OutputLength
	r.Tenant, r.Turn = row.Type, min(max(row.Turn-1, 0), textio.MaxTokens)
	r.Session = strconv.FormatInt(b.root(*row.ChatID, *row.ParentChatID), 10)
	return *row.Timestamp * 1e6, b.prompt(r, row.HashIDs, false)
}

// root returns the first chat of the conversation of chat. A parent before the start of the trace
// counts as the first.
func (b *bailian) root(chat, parent int64) int64 {
	if parent < 0 {
		return chat
	}
	root, later := b.roots[parent]
	if !later {
		root = parent
	}
	b.roots[chat] = root
	return root
}
