package table

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"blis/pkg/record"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// someOutcome is outcome i of a run: all fields are absent in some, and zero in others.
func someOutcome(i int) *record.Outcome {
	draw := rand.New(rand.NewPCG(1, uint64(i)))
	text := func(s string) string {
		return []string{"", s, fmt.Sprint(s, draw.IntN(5))}[draw.IntN(3)]
	}
	time := func() record.Micros {
		return []record.Micros{record.Never, 0, record.Micros(draw.Int64N(1 << 53))}[draw.IntN(3)]
	}
	o := &record.Outcome{
		Kind: record.KindOutcome, ID: fmt.Sprintf("req-%06d", i), State: record.StateCompleted, Reason: text("horizon"),
		ArrivalUS: record.Micros(i), AdmittedUS: time(), RoutedUS: time(), EnqueuedUS: time(), ScheduledUS: time(),
		FirstTokenUS: time(), CompletedUS: time(), Deployment: text("main"), Replica: record.Index(draw.IntN(4) - 1),
		Tenant: text("t"), SLOClass: text("chat"), Model: text("m"), Priority: draw.NormFloat64(),
		Session: text("s"), Step: text("a"), Iteration: draw.Int64N(3), Decision: text("dec-"),
		InputTokens: draw.Int64(), OutputTokens: draw.Int64(), GeneratedTokens: draw.Int64(), CachedTokens: draw.Int64(),
		ExpectedCachedTokens: draw.Int64(), Preemptions: draw.Int64N(3), Delays: draw.Int64N(3), ITLMaxUS: time(),
		SLOMet: []*bool{nil, record.Met(true), record.Met(false)}[draw.IntN(3)],
	}
	for range draw.IntN(4) {
		o.ITLUS = append(o.ITLUS, [2]int64{draw.Int64N(1e5), 1 + draw.Int64N(9)})
	}
	return o
}

func someDecision(i int) *record.Decision {
	if i%3 == 1 {
		return &record.Decision{Kind: record.KindDecision, ID: fmt.Sprintf("dec-%06d", i), Stage: "admission", AtUS: record.Micros(i * 31), Request: fmt.Sprintf("req-%06d", i),
			Verdict: "delay", DelayUS: int64(i), Replica: record.Nowhere, Candidates: 2}
	}
	return &record.Decision{
		Kind: record.KindDecision, ID: fmt.Sprintf("dec-%06d", i), Stage: "routing", AtUS: record.Micros(i * 31), Request: fmt.Sprintf("req-%06d", i),
		Deployment: "main", Replica: record.Index(i % 7), Score: float64(i) / 3, Candidates: int64(i % 5),
	}
}

// roundTrip writes n records and compares what comes back, however long it is
// kept, with what went in.
func roundTrip[T any](t *testing.T, n int, some func(int) *T, write func(*bytes.Buffer) Writer[T], read func(*bytes.Reader, int64) iter.Seq2[*T, error]) {
	t.Helper()
	var b bytes.Buffer
	w := write(&b)
	for i := range n {
		check(t, w.Write(some(i)))
	}
	check(t, w.Close())
	var got []*T
	for v, err := range read(bytes.NewReader(b.Bytes()), int64(b.Len())) {
		check(t, err)
		got = append(got, v)
	}
	if len(got) != n {
		t.Fatalf("%d rows, want %d", len(got), n)
	}
	for i, v := range got {
		if diff := cmp.Diff(some(i), v); diff != "" {
			t.Fatalf("row %d: %s", i, diff)
		}
	}
}

func TestRowsEqualRecords(t *testing.T) {
	for _, n := range []int{0, 1, batchRows, 3*batchRows + 17, groupRows + 5} {
		roundTrip(t, n, someOutcome,
			func(b *bytes.Buffer) Writer[record.Outcome] { return WriteOutcomes(b) },
			func(r *bytes.Reader, size int64) iter.Seq2[*record.Outcome, error] { return ReadOutcomes(r, size) })
		roundTrip(t, n, someDecision,
			func(b *bytes.Buffer) Writer[record.Decision] { return WriteDecisions(b) },
			func(r *bytes.Reader, size int64) iter.Seq2[*record.Decision, error] { return ReadDecisions(r, size) })
	}
}

// The columns are the fields of the wire, null where the wire may have nothing.
func TestColumnsAreTheFieldsOfTheWire(t *testing.T) {
	for name, row := range map[string]any{record.KindOutcome: new(outcomeRow), record.KindDecision: new(decisionRow)} {
		columns := parquet.SchemaOf(row).Fields()
		for _, o := range record.Objects {
			if o.Name != name {
				continue
			}
			if len(columns) != len(o.Fields)-1 {
				t.Errorf("%s: %d columns for %d fields", name, len(columns), len(o.Fields))
				continue
			}
			for i, f := range o.Fields[1:] {
				if columns[i].Name() != f.Name || columns[i].Optional() == f.Required {
					t.Errorf("%s: column %s (optional %v) for field %s (required %v)", name, columns[i].Name(), columns[i].Optional(), f.Name, f.Required)
				}
			}
		}
	}
}

// A group of rows is written as soon as it is full, so that memory stays bounded.
func TestRowsAreWrittenInGroups(t *testing.T) {
	var b bytes.Buffer
	w := WriteDecisions(&b)
	for i := range groupRows + batchRows {
		check(t, w.Write(someDecision(i)))
	}
	if b.Len() < groupRows {
		t.Errorf("%d bytes written before Close", b.Len())
	}
	check(t, w.Close())
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	check(t, err)
	if n := len(file.RowGroups()); n != 2 {
		t.Errorf("%d groups of rows, want 2", n)
	}
}

// What is absent on the wire is null in the table, and what is zero is not.
func TestAbsentIsNull(t *testing.T) {
	var b bytes.Buffer
	w := WriteOutcomes(&b)
	o := &record.Outcome{ID: "r", ScheduledUS: record.Never, Replica: record.Nowhere}
	check(t, w.Write(o))
	check(t, w.Close())
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	check(t, err)
	rows := make([]parquet.Row, 1)
	reader := file.RowGroups()[0].Rows()
	defer reader.Close()
	if n, _ := reader.ReadRows(rows); n != 1 {
		t.Fatalf("%d rows", n)
	}
	var null []string
	paths := file.Schema().Columns()
	for _, v := range rows[0] {
		if v.IsNull() {
			null = append(null, paths[v.Column()][0])
		}
	}
	want := strings.Fields("reason scheduled_us deployment replica tenant slo_class model session step iteration decision itl_us itl_us slo_met")
	if !reflect.DeepEqual(null, want) {
		t.Errorf("null: %q\nwant  %q", null, want)
	}
}

func TestWhatIsNoTable(t *testing.T) {
	var decisions bytes.Buffer
	w := WriteDecisions(&decisions)
	check(t, w.Write(someDecision(1)))
	check(t, w.Close())
	for _, data := range [][]byte{nil, []byte("{}"), decisions.Bytes(), decisions.Bytes()[:decisions.Len()-1]} {
		for _, err := range ReadOutcomes(bytes.NewReader(data), int64(len(data))) {
			if err == nil || !strings.HasPrefix(err.Error(), "opening a table: ") {
				t.Errorf("%d bytes: %v", len(data), err)
			}
		}
	}
}

func BenchmarkWriteOutcomes(b *testing.B) {
	b.ReportAllocs()
	outcomes := make([]*record.Outcome, 1000)
	for i := range outcomes {
		outcomes[i] = someOutcome(i)
	}
	w := WriteOutcomes(io.Discard)
	for i := range b.N {
		check(b, w.Write(outcomes[i%len(outcomes)]))
	}
	check(b, w.Close())
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
