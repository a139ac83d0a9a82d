// Command e2e is one test of an operator, as Go has it: envtest starts etcd and kube-apiserver (KUBEBUILDER_ASSETS),
// installs the CRD, the operator on controller-runtime runs, a Foo becomes a Deployment, everything stops.
//
//	e2e --crd FILE
package main

import (
	"context"
	"flag"
	"log"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"kubewright.dev/bench/peers/foo"
	"kubewright.dev/bench/peers/measure"
	"kubewright.dev/bench/peers/sample"
)

func main() {
	crd := flag.String("crd", "", "the definition of Foo")
	flag.Parse()
	phase := measure.Start()
	environment := &envtest.Environment{CRDDirectoryPaths: []string{*crd}, ErrorIfCRDPathMissing: true}
	if _, err := environment.Start(); err != nil {
		log.Fatal(err)
	}
	started := time.Since(phase.Began()).Seconds()
	if err := test(environment); err != nil {
		_ = environment.Stop()
		log.Fatal(err)
	}
	if err := environment.Stop(); err != nil {
		log.Fatal(err)
	}
	line := phase.Stop(1)
	line["started_s"] = started
	// The servers belong to the test.
	line["cpu_s"] = line["cpu_s"].(float64) + measure.Children()
	measure.Print("operator test", "envtest", line)
}

func test(environment *envtest.Environment) error {
	ctx, cancel := context.WithCancel(context.Background())
	manager, err := sample.Manager(environment.Config, 1)
	if err != nil {
		cancel()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() { cancel(); <-ended }()

	direct, err := client.New(environment.Config, client.Options{Scheme: sample.Scheme()})
	if err != nil {
		return err
	}
	replicas := int32(1)
	object := &foo.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"},
		Spec:       foo.Spec{DeploymentName: "one", Replicas: &replicas},
	}
	if err := direct.Create(ctx, object); err != nil {
		return err
	}
	for {
		var deployment appsv1.Deployment
		err := direct.Get(ctx, client.ObjectKey{Namespace: "default", Name: "one"}, &deployment)
		if err == nil {
			return nil
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
