// gomap DIR ROUNDS SECONDS: a Go map from a topic's name to its leaders,
// with the queries of the caches. DIR is a workload (bench/c/workload.h).
//
// It has no rules, no lock and no other facts: a Go program has it that copies
// leaders out of an answer once. Prints one JSON object.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const hotQueries = 1024

type query struct {
	topic     string
	partition int32
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Returns the thread's time on the CPU, as bench/c/common.c does.
func now() int64 {
	const threadCPUTime = 3
	var t syscall.Timespec
	_, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime,
		uintptr(unsafe.Pointer(&t)), 0)
	if e != 0 {
		check(e)
	}
	return t.Nano()
}

func readNames(dir string) []string {
	f, err := os.Open(filepath.Join(dir, "names"))
	check(err)
	defer f.Close()
	var names []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		names = append(names, lines.Text())
	}
	return names
}

func readQueries(dir, file string, names []string) []query {
	b, err := os.ReadFile(filepath.Join(dir, file))
	check(err)
	out := make([]query, len(b)/8)
	for i := range out {
		topic := binary.LittleEndian.Uint32(b[8*i:])
		partition := binary.LittleEndian.Uint32(b[8*i+4:])
		out[i] = query{names[topic], int32(partition)}
	}
	return out
}

// Reads the leaders of an answer in Metadata v4. All fields but the strings have
// fixed sizes.
func readLeaders(dir string, names []string) map[string][]int32 {
	b, err := os.ReadFile(filepath.Join(dir, "all-4"))
	check(err)
	at := 4 // throttle
	u16 := func() int { at += 2; return int(binary.BigEndian.Uint16(b[at-2:])) }
	u32 := func() int { at += 4; return int(binary.BigEndian.Uint32(b[at-4:])) }
	text := func() string { n := u16(); at += n; return string(b[at-n : at]) }
	for n := u32(); n > 0; n-- {
		u32()
		text()
		u32()
		text()
	}
	text()
	u32()
	leaders := make(map[string][]int32)
	for n := u32(); n > 0; n-- {
		at += 2 // error
		name := text()
		at++ // internal
		of := make([]int32, u32())
		for range of {
			at += 2
			partition := u32()
			of[partition] = int32(u32())
			at += 4 * u32()
			at += 4 * u32()
		}
		leaders[name] = of
	}
	if len(leaders) != len(names) {
		check(fmt.Errorf("%d topics, not %d", len(leaders), len(names)))
	}
	return leaders
}

//go:noinline
func ask(leaders map[string][]int32, queries []query) int64 {
	sum := int64(0)
	for i := range queries {
		q := &queries[i]
		if of := leaders[q.topic]; int(q.partition) < len(of) {
			sum += int64(of[q.partition])
		}
	}
	return sum
}

func main() {
	if len(os.Args) != 4 {
		check(fmt.Errorf("gomap DIR ROUNDS SECONDS"))
	}
	dir := os.Args[1]
	rounds, err := strconv.Atoi(os.Args[2])
	check(err)
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // nothing is allocated while it is timed

	names := readNames(dir)
	leaders := readLeaders(dir, names)
	random := readQueries(dir, "random", names)
	hot := readQueries(dir, "hot", names)
	runtime.GC()

	var anywhere, few []float64
	sum := ask(leaders, random)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for r := 0; r == 0 || (r < rounds && time.Now().Before(end)); r++ {
		begin := now()
		if ask(leaders, random) != sum {
			check(fmt.Errorf("another sum"))
		}
		anywhere = append(anywhere, float64(now()-begin)/float64(len(random)))
		from := r * hotQueries % len(hot)
		set, times := hot[from:from+hotQueries], 1+len(random)/hotQueries
		ask(leaders, set)
		begin = now()
		for i := 0; i < times; i++ {
			ask(leaders, set)
		}
		few = append(few, float64(now()-begin)/float64(times*hotQueries))
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"version":    strings.TrimPrefix(runtime.Version(), "go"),
		"sum":        sum,
		"random:map": anywhere,
		"hot:map":    few,
	}))
}
