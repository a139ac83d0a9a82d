// Command manager is the sample-controller on controller-runtime: a Deployment per Foo, the status written when it
// changed, an event for every sync.
//
//	manager --kubeconfig FILE [--workers N]
//
// SIGTERM ends it and makes it print what it took.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubewright.dev/bench/peers/foo"
	"kubewright.dev/bench/peers/measure"
	"kubewright.dev/bench/peers/sample"
)

func main() {
	// Of its own: controller-runtime has put a --kubeconfig into the common one.
	flags := flag.NewFlagSet("manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	workers := flags.Int("workers", 8, "how many Foos at a time")
	_ = flags.Parse(os.Args[1:])
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()

	phase := measure.Start()
	var requests measure.Requests
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	requests.Count(config)
	manager, err := sample.Manager(config, *workers)
	if err != nil {
		log.Fatal(err)
	}
	var foos foo.List
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	<-ctx.Done()
	_ = manager.GetCache().List(context.Background(), &foos, client.UnsafeDisableDeepCopy)
	line := phase.Stop(max(len(foos.Items), 1))
	line["steady_bytes"] = measure.Resident()
	requests.Add(line)
	if err := <-ended; err != nil {
		log.Print(err)
	}
	measure.Print("sample-controller", "controller-runtime", line)
}
