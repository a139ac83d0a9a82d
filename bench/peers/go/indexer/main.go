// The indexed store of client-go: 100,000 objects, two indexes.
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"kubewright.dev/bench/peers/measure"
)

const objects = 100_000

func pod(i, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name:            fmt.Sprintf("pod-%d", i),
		Namespace:       fmt.Sprintf("team-%d", i%50),
		UID:             "uid",
		ResourceVersion: fmt.Sprint(version),
		Labels:          map[string]string{"group": fmt.Sprintf("group-%d", i/10)},
	}}
}

func report(bench string, n int, run func()) {
	phase := measure.Start()
	run()
	measure.Print(bench, "client-go", phase.Stop(n))
}

func main() {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"group": func(obj any) ([]string, error) {
			return []string{obj.(*corev1.Pod).Labels["group"]}, nil
		},
	})
	first := make([]*corev1.Pod, objects)
	second := make([]*corev1.Pod, objects)
	for i := range objects {
		first[i], second[i] = pod(i, 1), pod(i, 2)
	}
	report("indexer add", objects, func() {
		for _, pod := range first {
			_ = store.Add(pod)
		}
	})
	report("indexer update", objects, func() {
		for _, pod := range second {
			_ = store.Update(pod)
		}
	})
	found := 0
	report("indexer by index, 10 objects", objects, func() {
		for i := range objects {
			pods, _ := store.ByIndex("group", fmt.Sprintf("group-%d", i%(objects/10)))
			found += len(pods)
		}
	})
	if found != objects*10 {
		panic(found)
	}
}
