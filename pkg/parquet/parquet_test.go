package parquet

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// example returns record i of a run: each optional field is present in some records and
// absent in others.
func example[T any](i int) *T {
	v := new(T)
	fill(reflect.ValueOf(v).Elem(), rand.New(rand.NewPCG(1, uint64(i))), "")
	return v
}

func exampleOutcome(i int) *stream.Outcome {
	o := example[stream.Outcome](i)
	o.Kind = stream.KindOutcome
	return o
}

func exampleDecision(i int) *stream.Decision {
	d := example[stream.Decision](i)
	d.Kind = stream.KindDecision
	return d
}

// fill gives v, a field with that JSON tag, a valid random value. It panics for an
// unknown type.
func fill(v reflect.Value, draw *rand.Rand, tag string) {
	name, omit, _ := strings.Cut(tag, ",")
	absent := omit != "" && draw.IntN(3) == 0
	switch {
	case name == "kind":
		return // no column
	case v.Type() == reflect.TypeFor[stream.Number]() && absent:
		v.SetFloat(math.NaN())
		return
	case v.CanInt() && omit == "omitzero" && absent:
		v.SetInt(-1) // Never, NoIndex
		return
	case absent:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint(name, draw.IntN(5)))
	case reflect.Bool:
		v.SetBool(draw.IntN(2) == 0)
	case reflect.Int32:
		v.SetInt(draw.Int64N(4))
	case reflect.Int64:
		v.SetInt(draw.Int64N(3) * draw.Int64N(1<<53))
	case reflect.Float64:
		v.SetFloat(draw.NormFloat64())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), draw, name)
	case reflect.Slice:
		n := 1 + draw.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), draw, name)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), draw, name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), draw, v.Type().Field(i).Tag.Get("json"))
		}
	default:
		panic("unknown field type " + v.Type().String())
	}
}

// equalNumbers treats two absent numbers as equal.
var equalNumbers = cmp.Comparer(func(a, b stream.Number) bool { return a == b || a.IsZero() && b.IsZero() })

// roundTrip writes n records, reads them all back and then compares them.
func roundTrip[T any](t *testing.T, n int, example func(int) *T, write func(io.Writer) Writer[T],
	read func(io.ReaderAt, int64) ([]T, error)) {
	t.Helper()
	var b bytes.Buffer
	w := write(&b)
	for i := range n {
		must(t, w.Write(example(i)))
	}
	must(t, w.Close())
	got, err := read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	must(t, err)
	if len(got) != n {
		t.Fatalf("%d rows, want %d", len(got), n)
	}
	step := 1 + n/10000 // compare at most 10,000 rows
	for i := 0; i < n; i += step {
		if diff := cmp.Diff(example(i), &got[i], equalNumbers); diff != "" {
			t.Fatalf("row %d: %s", i, diff)
		}
	}
}

func TestTablesRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, batchRows, 3*batchRows + 17, groupRows + 5} {
		if n > groupRows && testing.Short() {
			continue
		}
		roundTrip(t, n, exampleOutcome, WriteOutcomes, ReadOutcomes)
		roundTrip(t, n, exampleDecision, WriteDecisions, ReadDecisions)
	}
}

// A full row group is written at once, so that memory stays bounded.
func TestRowsAreWrittenInGroups(t *testing.T) {
	var b bytes.Buffer
	w := WriteDecisions(&b)
	for i := range groupRows + batchRows {
		must(t, w.Write(exampleDecision(i)))
	}
	if b.Len() < groupRows {
		t.Errorf("%d bytes written before Close", b.Len())
	}
	must(t, w.Close())
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	must(t, err)
	if n := len(file.RowGroups()); n != 2 {
		t.Errorf("%d row groups, want 2", n)
	}
}

// A field that is absent on the wire is null in the table; a zero is not.
func TestAbsentIsNull(t *testing.T) {
	var b bytes.Buffer
	w := WriteOutcomes(&b)
	o := &stream.Outcome{ID: "r", ScheduledUS: stream.Never, Replica: stream.NoIndex}
	must(t, w.Write(o))
	must(t, w.Close())
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	must(t, err)
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
	want := strings.Fields(`reason transfer_blocks scheduled_us slot_wait_us budget_wait_us block_wait_us
		adapter_wait_us grammar_wait_us encoder_wait_us deployment replica tenant slo_class model adapter grammar
		session step iteration decision decode_cached_tokens loaded_tokens loaded_tokens preempted_us
		redirects retry_of retry_us retried itl_us itl_us slo_met tpot_ms queue_ms`)
	if !reflect.DeepEqual(null, want) {
		t.Errorf("null: %q\nwant  %q", null, want)
	}
}

func TestInvalidTables(t *testing.T) {
	var decisions bytes.Buffer
	w := WriteDecisions(&decisions)
	must(t, w.Write(exampleDecision(1)))
	must(t, w.Close())
	for _, data := range [][]byte{nil, []byte("{}"), decisions.Bytes(), decisions.Bytes()[:decisions.Len()-1]} {
		_, err := ReadOutcomes(bytes.NewReader(data), int64(len(data)))
		if err == nil || !strings.HasPrefix(err.Error(), "opening a table: ") {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}

func BenchmarkWriteOutcomes(b *testing.B) {
	b.ReportAllocs()
	outcomes := make([]*stream.Outcome, 1000)
	for i := range outcomes {
		outcomes[i] = exampleOutcome(i)
	}
	w := WriteOutcomes(io.Discard)
	for i := range b.N {
		must(b, w.Write(outcomes[i%len(outcomes)]))
	}
	must(b, w.Close())
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// Fields that are absent on the wire are null in every row of a large table.
func TestAbsentIsNullInManyRows(t *testing.T) {
	const rows = 5000
	var file bytes.Buffer
	w := WriteDecisions(&file)
	for i := range rows {
		d := stream.Decision{ID: fmt.Sprint(i), Stage: stream.StageAdmission, Replica: stream.NoIndex}
		if i%7 == 0 || i%64 == 1 {
			d.ExpectedCachedTokens, d.Reason, d.DelayUS = 5, "why", 3
		}
		must(t, w.Write(&d))
	}
	must(t, w.Close())
	in := parquet.NewGenericReader[decisionRow](bytes.NewReader(file.Bytes()))
	defer in.Close()
	got := make([]decisionRow, rows)
	if n, err := in.Read(got); n != rows {
		t.Fatal(n, err)
	}
	for i, r := range got {
		present := i%7 == 0 || i%64 == 1
		if (r.ExpectedCachedTokens != nil) != present || (r.Reason != nil) != present ||
			(r.DelayUS != nil) != present || r.Rule != nil || r.Verdict != nil {
			t.Fatalf("row %d: %+v", i, r)
		}
	}
}

// A run that is written as tables is read back record by record.
func TestRunRoundTrip(t *testing.T) {
	var outcomes, decisions, steps bytes.Buffer
	o, d, s := WriteOutcomes(&outcomes), WriteDecisions(&decisions), WriteSteps(&steps)
	const header = `{"kind":"header","stream":"recording","stream_version":2,"tool":"x","version":"1","seed":3}`
	o.Metadata(HeaderKey, header)
	d.Metadata(HeaderKey, header)
	s.Metadata(HeaderKey, header)
	o.Metadata(MetricsKey, `{"kind":"metrics"}`)
	var want []string
	for i := range 3000 {
		out := &stream.Outcome{Kind: stream.KindOutcome, ID: fmt.Sprint("r", i), State: stream.StateRejected,
			Reason: stream.ReasonAdmission, ArrivalUS: stream.Micros(i), AdmittedUS: stream.Never,
			EndedUS: stream.Micros(i), RoutedUS: stream.Never, EnqueuedUS: stream.Never,
			ScheduledUS: stream.Never, FirstTokenUS: stream.Never, CompletedUS: stream.Never,
			Replica: stream.NoIndex, ITLMaxUS: stream.Never}
		out.ClearPrefill()
		must(t, o.Write(out))
		must(t, d.Write(&stream.Decision{ID: fmt.Sprint(i), Stage: stream.StageRouting, Replica: 1}))
		must(t, s.Write(&stream.Step{Deployment: "main", StartUS: stream.Micros(i), Batch: []stream.BatchEntry{
			{Request: "r", Tokens: int64(i)}}}))
		want = append(want, out.ID)
	}
	must(t, o.Close())
	must(t, d.Close())
	must(t, s.Close())
	source := func(b *bytes.Buffer) *Source { return &Source{bytes.NewReader(b.Bytes()), int64(b.Len())} }
	var text bytes.Buffer
	run := Run{Outcomes: source(&outcomes), Decisions: source(&decisions), Steps: source(&steps)}
	must(t, run.WriteStream(&text))
	if !strings.HasPrefix(text.String(), `{"kind":"header"`) {
		t.Errorf("the stream is not plain: it begins with %.20q", text.String())
	}
	counts := map[string]int{}
	r := stream.NewReader(&text)
	for r.Next() {
		if r.Kind() == stream.KindOutcome {
			var got stream.Outcome
			must(t, r.Outcome(&got))
			if got.ID != want[counts[stream.KindOutcome]] {
				t.Fatalf("outcome %d is %s", counts[stream.KindOutcome], got.ID)
			}
		}
		counts[r.Kind()]++
	}
	must(t, r.Err())
	if r.Header().Seed != 3 || counts["outcome"] != 3000 || counts["decision"] != 3000 || counts["step"] != 3000 ||
		counts["metrics"] != 1 {
		t.Errorf("seed %d, records %v", r.Header().Seed, counts)
	}
	var alone, other bytes.Buffer
	d = WriteDecisions(&alone)
	must(t, d.Close())
	err := (&Run{Outcomes: source(&alone)}).WriteStream(io.Discard)
	if err == nil || !strings.Contains(err.Error(), HeaderKey) {
		t.Errorf("a table without a header: %v", err)
	}
	d = WriteDecisions(&other)
	d.Metadata(HeaderKey, header)
	d.Metadata(EndKey, `{"kind":"end","records":1}`)
	must(t, d.Close())
	for key, b := range map[string]*bytes.Buffer{HeaderKey: &alone, EndKey: &other} {
		err := (&Run{Outcomes: source(&outcomes), Decisions: source(b)}).WriteStream(io.Discard)
		if want := "the tables are of different runs: the " + key; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a table of another run: %v, want %s", err, want)
		}
	}
}

// The latencies of a request that completed after a retry count from its first attempt.
func TestDerivedLatencies(t *testing.T) {
	o := stream.Outcome{ArrivalUS: 5000, RetryUS: 1000, EnqueuedUS: 6000, ScheduledUS: 8500, FirstTokenUS: 10000,
		CompletedUS: 16000, OutputTokens: 4}
	o.ClearPrefill()
	// It began at 4 ms: the first token came 6 ms and the last 12 ms later, 3 gaps in 6 ms; it queued for 2.5 ms.
	row := rowOfOutcome(&o)
	if *row.TTFTMS != 6 || *row.E2EMS != 12 || *row.TPOTMS != 2 || *row.QueueMS != 2.5 {
		t.Errorf("ttft %v, e2e %v, tpot %v, queue %v", *row.TTFTMS, *row.E2EMS, *row.TPOTMS, *row.QueueMS)
	}
	var b bytes.Buffer
	w := WriteOutcomesCSV(&b)
	must(t, w.Write(&o))
	must(t, w.Close())
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "ttft_ms,tpot_ms,e2e_ms,queue_ms") ||
		!strings.HasSuffix(lines[1], ",6,2,12,2.5") {
		t.Errorf("CSV:\n%s", b.String())
	}
}
