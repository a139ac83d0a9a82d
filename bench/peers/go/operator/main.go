// Command operator is a sample-controller on client-go alone: informers, a work queue, an event recorder. It does what
// upstream's does: a Deployment per Foo, the status written after every sync, an event for it.
//
//	operator --kubeconfig FILE [--workers N]
//
// SIGTERM ends it and makes it print what it took.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"kubewright.dev/bench/peers/foo"
	"kubewright.dev/bench/peers/measure"
)

type controller struct {
	clients     kubernetes.Interface
	foos        *rest.RESTClient
	store       cache.Store
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	recorder    record.EventRecorder
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the server")
	workers := flag.Int("workers", 8, "how many Foos at a time")
	flag.Parse()
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

	scheme := runtime.NewScheme()
	_ = foo.AddToScheme(scheme)
	custom := rest.CopyConfig(config)
	custom.GroupVersion = &foo.GroupVersion
	custom.APIPath = "/apis"
	custom.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	foos, err := rest.RESTClientFor(custom)
	if err != nil {
		log.Fatal(err)
	}
	builtin := rest.CopyConfig(config)
	builtin.ContentType = runtime.ContentTypeProtobuf
	builtin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	clients := kubernetes.NewForConfigOrDie(builtin)

	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
	factory := informers.NewSharedInformerFactory(clients, 30*time.Second)
	deployments := factory.Apps().V1().Deployments()
	fooInformer := cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(foos, "foos", metav1.NamespaceAll, fields.Everything()),
		&foo.Foo{}, 30*time.Second, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	c := &controller{
		clients:     clients,
		foos:        foos,
		store:       fooInformer.GetStore(),
		deployments: deployments.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		recorder: broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "sample-controller"}),
	}
	_, _ = fooInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, object any) { c.enqueue(object) },
	})
	_, _ = deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.owner,
		UpdateFunc: func(old, object any) {
			if old.(*appsv1.Deployment).ResourceVersion != object.(*appsv1.Deployment).ResourceVersion {
				c.owner(object)
			}
		},
		DeleteFunc: c.owner,
	})
	factory.Start(ctx.Done())
	go fooInformer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), fooInformer.HasSynced, deployments.Informer().HasSynced) {
		log.Fatal("the caches did not sync")
	}
	for range *workers {
		go func() {
			for c.next(ctx) {
			}
		}()
	}
	<-ctx.Done()
	c.queue.ShutDown()
	line := phase.Stop(len(c.store.ListKeys()))
	line["steady_bytes"] = measure.Resident()
	requests.Add(line)
	measure.Print("sample-controller", "client-go", line)
}

func (c *controller) enqueue(object any) {
	if name, err := cache.ObjectToName(object); err == nil {
		c.queue.Add(name)
	}
}

// owner asks for the Foo that controls an object.
func (c *controller) owner(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	meta, ok := object.(metav1.Object)
	if !ok {
		return
	}
	if owner := metav1.GetControllerOf(meta); owner != nil && owner.Kind == "Foo" {
		c.queue.Add(cache.ObjectName{Namespace: meta.GetNamespace(), Name: owner.Name})
	}
}

func (c *controller) next(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	if err := c.sync(ctx, name); err != nil {
		c.queue.AddRateLimited(name)
	} else {
		c.queue.Forget(name)
	}
	return true
}

func (c *controller) sync(ctx context.Context, name cache.ObjectName) error {
	object, found, err := c.store.GetByKey(name.String())
	if err != nil || !found {
		return err
	}
	wanted := object.(*foo.Foo)
	deployment, err := c.deployments.Deployments(wanted.Namespace).Get(wanted.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		deployment, err = c.clients.AppsV1().Deployments(wanted.Namespace).Create(ctx, foo.Deployment(wanted), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(deployment, wanted) {
		c.recorder.Event(wanted, corev1.EventTypeWarning, "ErrResourceExists", "the Deployment is not ours")
		return fmt.Errorf("%s is not ours", deployment.Name)
	}
	if wanted.Spec.Replicas != nil && *wanted.Spec.Replicas != *deployment.Spec.Replicas {
		deployment, err = c.clients.AppsV1().Deployments(wanted.Namespace).Update(ctx, foo.Deployment(wanted), metav1.UpdateOptions{})
		if err != nil {
			return err
		}
	}
	status := wanted.DeepCopy()
	status.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	err = c.foos.Put().Namespace(status.Namespace).Resource("foos").Name(status.Name).SubResource("status").Body(status).Do(ctx).Error()
	if err != nil {
		return err
	}
	c.recorder.Event(wanted, corev1.EventTypeNormal, "Synced", "Foo synced successfully")
	return nil
}
