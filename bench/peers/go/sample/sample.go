// Package sample is the sample-controller as one writes it on controller-runtime.
package sample

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"kubewright.dev/bench/peers/foo"
)

type reconciler struct {
	client.Client
	recorder events.EventRecorder
}

// Scheme knows the built-in types and Foo.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = foo.AddToScheme(scheme)
	return scheme
}

// Manager runs the controller.
func Manager(config *rest.Config, workers int) (manager.Manager, error) {
	log.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&foo.Foo{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{Client: mgr.GetClient(), recorder: mgr.GetEventRecorder("sample-controller")})
	return mgr, err
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var wanted foo.Foo
	if err := r.Get(ctx, request.NamespacedName, &wanted); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: wanted.Namespace, Name: wanted.Spec.DeploymentName}
	err := r.Get(ctx, key, &deployment)
	created := apierrors.IsNotFound(err)
	if created {
		deployment = *foo.Deployment(&wanted)
		err = r.Create(ctx, &deployment)
		if apierrors.IsAlreadyExists(err) {
			// The cache is behind; the event of the Deployment asks again.
			return ctrl.Result{}, nil
		}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if !metav1.IsControlledBy(&deployment, &wanted) {
		r.recorder.Eventf(&wanted, nil, corev1.EventTypeWarning, "ErrResourceExists", "Sync", "the Deployment is not ours")
		return ctrl.Result{}, nil
	}
	if wanted.Spec.Replicas != nil && *wanted.Spec.Replicas != *deployment.Spec.Replicas {
		deployment.Spec.Replicas = wanted.Spec.Replicas
		if err := r.Update(ctx, &deployment); err != nil {
			return ctrl.Result{}, err
		}
	}
	if created || wanted.Status.AvailableReplicas != deployment.Status.AvailableReplicas {
		wanted.Status.AvailableReplicas = deployment.Status.AvailableReplicas
		if err := r.Status().Update(ctx, &wanted); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.recorder.Eventf(&wanted, nil, corev1.EventTypeNormal, "Synced", "Sync", "Foo synced successfully")
	return ctrl.Result{}, nil
}
