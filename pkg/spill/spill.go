// Package spill keeps sorted samples in a temporary file, so that memory does not grow with their number.
//
// Samples come in runs, each of which is sorted. A run is stored as the differences of successive keys, each with its
// tag, as integers of variable length.
package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sort"

	"blis/pkg/stat"
)

const (
	// Run is a good number of samples for a run: sorting it takes 4 MiB.
	Run = 1 << 17
	// maxSample is the size of the longest sample in bytes, writeSize that of a write.
	maxSample, writeSize = binary.MaxVarintLen64 + binary.MaxVarintLen32, 1 << 16
	// readSize and blockSize are the bytes and the samples of a run that are in memory while runs are merged.
	readSize, blockSize = 1 << 12, 1 << 9
)

// Runs are runs of samples in a temporary file, which is in the folder for temporary files (TMPDIR) and has no name, so
// that it disappears with the process. The zero Runs are empty and have no file.
type Runs struct {
	file *os.File
	runs []section
}

// section is the part of the file that holds a run.
type section struct{ from, to int64 }

// Empty reports whether there are no samples.
func (r *Runs) Empty() bool { return len(r.runs) == 0 }

// Append adds a run. It keeps no reference to it.
func (r *Runs) Append(sorted []stat.Keyed) error {
	if len(sorted) == 0 {
		return nil
	}
	if r.file == nil {
		if err := r.create(); err != nil {
			return described(err)
		}
	}
	at := int64(0)
	if n := len(r.runs); n > 0 {
		at = r.runs[n-1].to
	}
	s := section{at, at}
	buffer, last := make([]byte, 0, writeSize), uint64(0)
	for i := range sorted {
		buffer = binary.AppendUvarint(buffer, sorted[i].Key-last)
		buffer = binary.AppendUvarint(buffer, uint64(sorted[i].Tag))
		last = sorted[i].Key
		if len(buffer) > writeSize-maxSample || i == len(sorted)-1 {
			if _, err := r.file.WriteAt(buffer, s.to); err != nil {
				return described(err)
			}
			s.to += int64(len(buffer))
			buffer = buffer[:0]
		}
	}
	r.runs = append(r.runs, s)
	return nil
}

// create creates the file. Where the system allows it, the file loses its name at once.
func (r *Runs) create() (err error) {
	if r.file, err = os.CreateTemp("", "blis-"); err != nil {
		return err
	}
	os.Remove(r.file.Name()) // else Close does it
	return nil
}

func described(err error) error {
	return fmt.Errorf("a long run keeps data in a temporary file: %w; TMPDIR can name a folder with more space", err)
}

// Merge calls use with all samples in ascending order of keys, some at a time. The order of equal keys is undefined. It
// takes 12 KiB for each run.
func (r *Runs) Merge(use func(sorted []stat.Keyed)) error {
	cursors := make([]*cursor, len(r.runs))
	for i, s := range r.runs {
		cursors[i] = &cursor{file: r.file, section: s}
	}
	var batch, scratch []stat.Keyed
	for len(cursors) > 0 {
		// What is read next is not less than the last sample read of any run.
		bound := uint64(math.MaxUint64)
		for _, c := range cursors {
			if len(c.samples) == 0 {
				if err := c.read(); err != nil {
					return described(err)
				}
			}
			if !c.atEnd() {
				bound = min(bound, c.last)
			}
		}
		batch = batch[:0]
		for _, c := range cursors {
			n := len(c.samples)
			if c.last > bound {
				n = sort.Search(n, func(i int) bool { return c.samples[i].Key > bound })
			}
			batch = append(batch, c.samples[:n]...)
			c.samples = c.samples[n:]
		}
		scratch = slices.Grow(scratch[:0], len(batch))[:len(batch)]
		use(stat.SortKeyed(batch, scratch))
		cursors = slices.DeleteFunc(cursors, func(c *cursor) bool { return len(c.samples) == 0 && c.atEnd() })
	}
	return nil
}

// Close removes the file.
func (r *Runs) Close() {
	if r.file != nil {
		r.file.Close()
		os.Remove(r.file.Name()) // fails where the file has no name any more
	}
	*r = Runs{}
}

// cursor reads a run.
type cursor struct {
	file *os.File
	section
	bytes   []byte // read and not decoded
	buffer  [readSize]byte
	samples []stat.Keyed // decoded and not used
	block   [blockSize]stat.Keyed
	last    uint64 // key of the last decoded sample
}

// atEnd reports whether all samples are decoded.
func (c *cursor) atEnd() bool { return c.from == c.to && len(c.bytes) == 0 }

// read decodes the next samples.
func (c *cursor) read() error {
	n := 0
	for n < blockSize && !c.atEnd() {
		if len(c.bytes) < maxSample && c.from < c.to {
			kept := copy(c.buffer[:], c.bytes)
			more := int(min(c.to-c.from, int64(readSize-kept)))
			if _, err := c.file.ReadAt(c.buffer[kept:kept+more], c.from); err != nil {
				return err
			}
			c.from += int64(more)
			c.bytes = c.buffer[:kept+more]
		}
		key, k := binary.Uvarint(c.bytes)
		tag, t := binary.Uvarint(c.bytes[max(k, 0):])
		if k <= 0 || t <= 0 {
			return errors.New(c.file.Name() + " was modified")
		}
		c.last += key
		c.block[n] = stat.Keyed{Key: c.last, Tag: uint32(tag)}
		c.bytes = c.bytes[k+t:]
		n++
	}
	c.samples = c.block[:n]
	return nil
}
