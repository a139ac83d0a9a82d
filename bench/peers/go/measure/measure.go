// Package measure is what every program here says about itself: one line of JSON per workload.
package measure

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// Phase is a measurement that is under way.
type Phase struct {
	cpu   float64
	start time.Time
}

// Start starts the clock and forgets the peak of memory so far.
func Start() Phase {
	// Linux: "5" resets VmHWM. Elsewhere the peak is that of the process.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200)
	return Phase{cpu: CPU(), start: time.Now()}
}

// Began is when the clock was started.
func (p Phase) Began() time.Time {
	return p.start
}

// Stop is what happened since, for n operations.
func (p Phase) Stop(n int) map[string]any {
	wall, cpu := time.Since(p.start).Seconds(), CPU()-p.cpu
	return map[string]any{
		"n": n, "wall_s": wall, "cpu_s": cpu, "per_s": float64(n) / wall, "cpu_us_each": cpu * 1e6 / float64(n),
		"peak_bytes": status("VmHWM:"),
	}
}

// Print writes a line of results.
func Print(bench, implementation string, line map[string]any) {
	line["bench"], line["impl"] = bench, implementation
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		log.Fatal(err)
	}
}

// CPU is the user and system time of this process.
func CPU() float64 {
	return cpu(syscall.RUSAGE_SELF)
}

// Children is the user and system time of the processes that this one has started and seen the end of.
func Children() float64 {
	return cpu(syscall.RUSAGE_CHILDREN)
}

func cpu(who int) float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// Resident is the resident memory of this process.
func Resident() int {
	return status("VmRSS:")
}

// Peak is the highest resident memory of this process since Start.
func Peak() int {
	return status("VmHWM:")
}

// Forced is the resident memory after everything that is not needed has been given back: less than a program left to
// itself ever shows.
func Forced() int {
	debug.FreeOSMemory()
	return Resident()
}

func status(field string) int {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, field); found {
			kilobytes, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return kilobytes * 1024
		}
	}
	return 0
}

// Percentile of durations in microseconds; they are sorted.
func Percentile(of []time.Duration, percent int) float64 {
	if len(of) == 0 {
		return 0
	}
	sort.Slice(of, func(i, j int) bool { return of[i] < of[j] })
	return float64(of[min(len(of)*percent/100, len(of)-1)].Nanoseconds()) / 1e3
}

// Requests counts what a client sends.
type Requests struct {
	reads, watches, writes, events atomic.Int64
}

// Count makes every client of this configuration count.
func (r *Requests) Count(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			switch {
			case strings.HasSuffix(request.URL.Path, "/events") || strings.Contains(request.URL.Path, "/events/"):
				r.events.Add(1)
			case request.URL.Query().Has("watch"):
				r.watches.Add(1)
			case request.Method == http.MethodGet:
				r.reads.Add(1)
			default:
				r.writes.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
}

// Add puts the numbers into a line.
func (r *Requests) Add(line map[string]any) {
	reads, watches, writes, events := r.reads.Load(), r.watches.Load(), r.writes.Load(), r.events.Load()
	line["requests"] = reads + watches + writes + events
	line["requests_read"], line["requests_watch"] = reads, watches
	line["requests_write"], line["requests_event"] = writes, events
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
