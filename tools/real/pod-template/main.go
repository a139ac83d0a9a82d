// Command pod-template prints the Go types that a pod template is made of, one per line, as
// crates/kubewright-cluster/src/workloads/pod_template.txt has them: a name and its kind, or a name and its fields in order,
// each with its name, its name in JSON (none if it is embedded) and its type.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Written by hand on the other side: their fields are not those of their JSON.
var opaque = map[string]bool{"v1.Time": true, "v1.ManagedFieldsEntry": true, "intstr.IntOrString": true, "resource.Quantity": true}

func spelled(t reflect.Type) string {
	switch {
	case t.Name() != "":
		return t.String()
	case t.Kind() == reflect.Pointer:
		return "*" + spelled(t.Elem())
	case t.Kind() == reflect.Slice:
		return "[]" + spelled(t.Elem())
	case t.Kind() == reflect.Map:
		return "map[" + spelled(t.Key()) + "]" + spelled(t.Elem())
	}
	panic("a pod template has no " + t.String())
}

func collect(t reflect.Type, into map[string]string) {
	_, known := into[t.String()]
	if known || opaque[t.String()] {
		return
	}
	named := t.PkgPath() != ""
	switch t.Kind() {
	case reflect.Struct:
		into[t.String()] = ""
		var fields []string
		for i := range t.NumField() {
			field := t.Field(i)
			json, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields = append(fields, field.Name+":"+json+":"+spelled(field.Type))
			collect(field.Type, into)
		}
		into[t.String()] = "{" + strings.Join(fields, " ") + "}"
	case reflect.Map:
		if named {
			into[t.String()] = fmt.Sprintf("map[%s]%s", spelled(t.Key()), spelled(t.Elem()))
		}
		collect(t.Key(), into)
		collect(t.Elem(), into)
	case reflect.Pointer, reflect.Slice:
		collect(t.Elem(), into)
	default:
		if named {
			into[t.String()] = t.Kind().String()
		}
	}
}

func main() {
	types := map[string]string{}
	collect(reflect.TypeFor[v1.PodTemplateSpec](), types)
	var names []string
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(name, types[name])
	}
}
