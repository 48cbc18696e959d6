package metrics

import (
	"bufio"
	"encoding/binary"
	"io"
	"iter"
	"os"

	"blis/pkg/stat"
)

const (
	// samplesPerChunk makes a chunk of 128 KiB.
	samplesPerChunk = 8192
	// chunksInMemory is the number of chunks of a column that stay in memory if it has a file.
	chunksInMemory = 64
	// sampleBytes is the size of a value in the file: its key and its group.
	sampleBytes = 12
)

// column holds the values of one kind, in any order, each with its group.
type column struct {
	chunks [][]stat.Keyed // all but the last are full
	// counts are the numbers of values by group.
	counts []int64
	// runs are sorted parts in the file.
	runs []*io.SectionReader
}

// add adds a value. f holds what does not stay in memory; nil keeps all in memory.
func (c *column) add(f *spillFile, key uint64, group uint32) {
	for int(group) >= len(c.counts) {
		c.counts = append(c.counts, 0)
	}
	c.counts[group]++
	last := len(c.chunks) - 1
	if last < 0 || len(c.chunks[last]) == cap(c.chunks[last]) {
		if f != nil && len(c.chunks) == f.chunks {
			c.runs = append(c.runs, f.write(c.inMemory()))
			c.chunks = c.chunks[:0]
		}
		c.chunks = append(c.chunks, make([]stat.Keyed, 0, samplesPerChunk))
		last = len(c.chunks) - 1
	}
	c.chunks[last] = append(c.chunks[last], stat.Keyed{Key: key, Tag: group})
}

// inMemory sorts the values in memory.
func (c *column) inMemory() []stat.Keyed {
	var all []stat.Keyed
	for _, chunk := range c.chunks {
		all = append(all, chunk...)
	}
	return stat.SortKeyed(all, make([]stat.Keyed, len(all)))
}

// count returns the number of values in a group.
func (c *column) count(group int) int64 {
	if group >= len(c.counts) {
		return 0
	}
	return c.counts[group]
}

// sorted returns all values in ascending order. Errors of the file are kept in f.
func (c *column) sorted(f *spillFile) iter.Seq[stat.Keyed] {
	memory := c.inMemory()
	return func(yield func(stat.Keyed) bool) {
		var runs runHeap
		for _, r := range c.runs {
			runs.push(newRun(f, r))
		}
		for _, x := range memory {
			for len(runs) > 0 && runs[0].first.Key < x.Key {
				if !yield(runs.next()) {
					return
				}
			}
			if !yield(x) {
				return
			}
		}
		for len(runs) > 0 {
			if !yield(runs.next()) {
				return
			}
		}
	}
}

// spillFile is a temporary file, which the system deletes when the process ends.
type spillFile struct {
	// chunks is the number of chunks of a column that stay in memory.
	chunks int
	file   *os.File
	size   int64
	err    error
}

// write appends sorted values and returns the part of the file that has them.
func (f *spillFile) write(sorted []stat.Keyed) *io.SectionReader {
	if f.file == nil && f.err == nil {
		if f.file, f.err = os.CreateTemp("", "blis-"); f.err == nil {
			f.err = os.Remove(f.file.Name())
		}
	}
	if f.err != nil {
		return io.NewSectionReader(nil, 0, 0)
	}
	out := bufio.NewWriterSize(io.NewOffsetWriter(f.file, f.size), 64<<10)
	var buf [sampleBytes]byte
	for _, x := range sorted {
		binary.LittleEndian.PutUint64(buf[:], x.Key)
		binary.LittleEndian.PutUint32(buf[8:], x.Tag)
		out.Write(buf[:]) // Flush returns the first error
	}
	f.err = out.Flush()
	from := f.size
	f.size += int64(len(sorted)) * sampleBytes
	return io.NewSectionReader(f.file, from, f.size-from)
}

// run reads a sorted part of a file; first is its next value.
type run struct {
	in    *bufio.Reader
	file  *spillFile
	first stat.Keyed
}

// newRun begins to read a part from the start.
func newRun(f *spillFile, part *io.SectionReader) *run {
	part.Seek(0, io.SeekStart)
	return &run{in: bufio.NewReaderSize(part, 16<<10), file: f}
}

// advance reads the next value; false at the end.
func (r *run) advance() bool {
	var buf [sampleBytes]byte
	if _, err := io.ReadFull(r.in, buf[:]); err != nil {
		if err != io.EOF && r.file.err == nil {
			r.file.err = err
		}
		return false
	}
	r.first = stat.Keyed{Key: binary.LittleEndian.Uint64(buf[:]), Tag: binary.LittleEndian.Uint32(buf[8:])}
	return true
}

// runHeap is a heap of runs by their next values.
type runHeap []*run

// push adds a run that is not empty.
func (h *runHeap) push(r *run) {
	if !r.advance() {
		return
	}
	*h = append(*h, r)
	for i := len(*h) - 1; i > 0 && (*h)[i].first.Key < (*h)[(i-1)/2].first.Key; i = (i - 1) / 2 {
		(*h)[i], (*h)[(i-1)/2] = (*h)[(i-1)/2], (*h)[i]
	}
}

// next removes and returns the smallest value.
func (h *runHeap) next() stat.Keyed {
	all := *h
	x := all[0].first
	if !all[0].advance() {
		all[0] = all[len(all)-1]
		all = all[:len(all)-1]
		*h = all
	}
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(all); child++ {
			if all[child].first.Key < all[least].first.Key {
				least = child
			}
		}
		if least == i {
			return x
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}
