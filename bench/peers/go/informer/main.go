// Command informer syncs a client-go informer with a server and prints one JSON line per phase, as
// bench/src/bin/informer.rs does.
//
//	informer --kubeconfig FILE --kind pods|configmaps --count N --encoding json|protobuf [--strip] [--phases sync,watch,relist]
//
// The server ends the phases: "watch" is over when an object named bench-marker-1 appears, "relist" with bench-marker-2.
package main

import (
	"context"
	"flag"
	"log"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"kubewright.dev/bench/peers/measure"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the server")
	kind := flag.String("kind", "pods", "pods or configmaps")
	count := flag.Int("count", 0, "how many objects there are")
	events := flag.Int("events", 20_000, "how many changes the watch brings")
	encoding := flag.String("encoding", "protobuf", "json or protobuf")
	stripped := flag.Bool("strip", false, "drop managedFields")
	phases := flag.String("phases", "sync", "sync, watch, relist")
	settle := flag.Duration("settle", 3*time.Second, "how long memory may settle")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	implementation := "client-go, JSON"
	config.ContentType = runtime.ContentTypeJSON
	if *encoding == "protobuf" {
		implementation = "client-go"
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	var options []informers.SharedInformerOption
	if *stripped {
		implementation += ", stripped"
		options = append(options, informers.WithTransform(strip))
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, options...)
	informer := factory.Core().V1().Pods().Informer()
	if *kind == "configmaps" {
		informer = factory.Core().V1().ConfigMaps().Informer()
	}

	lags := make([]time.Duration, 0, *events)
	first, marked := make(chan struct{}, 1), make(chan string, 2)
	see := func(object any) {
		meta := object.(metav1.Object)
		if name := meta.GetName(); strings.HasPrefix(name, "bench-marker-") {
			marked <- name
			return
		}
		at, err := strconv.ParseInt(meta.GetLabels()["bench-at"], 10, 64)
		if err != nil {
			return
		}
		if len(lags) == 0 {
			first <- struct{}{}
		}
		lags = append(lags, time.Duration(time.Now().UnixNano()-at))
	}
	if strings.Contains(*phases, "watch") {
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    see,
			UpdateFunc: func(_, object any) { see(object) },
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	phase := measure.Start()
	factory.Start(context.Background().Done())
	factory.WaitForCacheSync(context.Background().Done())
	if held := len(informer.GetStore().ListKeys()); held < *count {
		log.Fatalf("%d of %d objects are there", held, *count)
	}
	line := phase.Stop(*count)
	time.Sleep(*settle)
	line["steady_bytes"] = measure.Resident()
	line["forced_bytes"] = measure.Forced()
	measure.Print("sync", implementation, line)

	if strings.Contains(*phases, "watch") {
		phase := measure.Start()
		<-first
		begin := time.Now()
		await(marked, "bench-marker-1")
		line := phase.Stop(*events)
		wall := time.Since(begin).Seconds()
		line["wall_s"], line["per_s"] = wall, float64(*events)/wall
		line["delivered"] = len(lags)
		line["p50_us"], line["p99_us"] = measure.Percentile(lags, 50), measure.Percentile(lags, 99)
		measure.Print("watch", implementation, line)
	}
	if strings.Contains(*phases, "relist") {
		time.Sleep(*settle)
		steady := measure.Resident()
		phase := measure.Start()
		await(marked, "bench-marker-2")
		time.Sleep(*settle)
		line := phase.Stop(*count)
		line["steady_bytes"] = steady
		line["peak_to_steady"] = float64(measure.Peak()) / float64(steady)
		measure.Print("relist", implementation, line)
	}
}

func await(marked <-chan string, name string) {
	for <-marked != name {
	}
}

// strip drops what nobody reads, as the documentation of SetTransform suggests.
func strip(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object, nil
}
