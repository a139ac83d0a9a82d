// Command queue runs the work queue benchmarks on client-go's util/workqueue and prints one JSON line per
// workload. It mirrors bench/src/bin/queue.rs: the same keys, the same delays, the same number of adders and workers.
package main

import (
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"kubewright.dev/bench/peers/measure"
)

const (
	items   = 1_000_000
	workers = 8
	spread  = time.Second
)

func main() {
	workloads := os.Args[1:]
	if len(workloads) == 0 {
		workloads = []string{"distinct-1-adder", "distinct-4-adders", "burst", "delayed-1s"}
	}
	for _, workload := range workloads {
		var run func([]string)
		switch workload {
		case "distinct-1-adder":
			run = func(keys []string) { distinct(keys, 1) }
		case "distinct-4-adders":
			run = func(keys []string) { distinct(keys, 4) }
		case "burst":
			run = burst
		case "delayed-1s":
			run = delayed
		default:
			log.Fatalf("no workload %q", workload)
		}
		timed(workload, run)
	}
}

func timed(bench string, run func([]string)) {
	keys := make([]string, items)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%d/object-%d", i%100, i)
	}
	phase := measure.Start()
	run(keys)
	measure.Print(bench, "client-go", phase.Stop(items))
}

// distinct adds every key once while the workers take and finish them.
func distinct(keys []string, adders int) {
	queue := workqueue.NewTyped[string]()
	finish := work(queue)
	var adding sync.WaitGroup
	share := len(keys) / adders
	for adder := range adders {
		adding.Go(func() {
			for _, key := range keys[adder*share : (adder+1)*share] {
				queue.Add(key)
			}
		})
	}
	adding.Wait()
	finish()
}

// burst adds every key once before the workers start.
func burst(keys []string) {
	queue := workqueue.NewTyped[string]()
	for _, key := range keys {
		queue.Add(key)
	}
	work(queue)()
}

// work starts workers that count; the function it returns waits for them.
func work(queue *workqueue.Typed[string]) func() {
	var seen atomic.Int64
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			var mine int64
			for {
				key, shutdown := queue.Get()
				if shutdown {
					seen.Add(mine)
					return
				}
				mine++
				queue.Done(key)
			}
		})
	}
	return func() {
		queue.ShutDown()
		working.Wait()
		if seen.Load() != items {
			log.Fatalf("%d of %d keys arrived", seen.Load(), items)
		}
	}
}

// delayed adds every key with a delay between nothing and one second and waits for the last to be finished.
func delayed(keys []string) {
	queue := workqueue.NewTypedDelayingQueue[string]()
	var left atomic.Int64
	left.Store(items)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				queue.Done(key)
				if left.Add(-1) == 0 {
					queue.ShutDown()
				}
			}
		})
	}
	for i, key := range keys {
		queue.AddAfter(key, delay(i))
	}
	working.Wait()
}

// delay spreads the items over one second in an order that looks random and is the same in every run.
func delay(i int) time.Duration {
	return time.Duration(uint64(uint32(i)*2_654_435_761) * uint64(spread) >> 32)
}
