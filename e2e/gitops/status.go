package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retry is the delay before an ended watch is started again.
const retry = 500 * time.Millisecond

// printStatus prints the status that kstatus computes for objects: those in files, and KIND/NAME.
func printStatus(ctx context.Context, cluster *cluster, isWatch bool, namespace string, arguments []string) error {
	var objects []*unstructured.Unstructured
	for _, argument := range arguments {
		if _, err := os.Stat(argument); err == nil {
			read, _, err := readFiles([]string{argument})
			if err != nil {
				return err
			}
			objects = append(objects, read...)
			continue
		}
		object, err := cluster.parse(argument, namespace)
		if err != nil {
			return err
		}
		objects = append(objects, object)
	}
	cluster.setNamespaces(objects)
	var watches sync.WaitGroup
	for _, object := range objects {
		if isWatch {
			watches.Go(func() { watchStatus(ctx, cluster, object) })
			continue
		}
		live, err := cluster.get(ctx, object)
		if err != nil {
			return err
		}
		statusLine(object, live).emit()
	}
	watches.Wait()
	return nil
}

// parse returns the object of KIND/NAME. KIND is a kind or resource as kubectl accepts it: bundledeployments.windlass.dev.
func (c *cluster) parse(argument, namespace string) (*unstructured.Unstructured, error) {
	resource, name, ok := strings.Cut(argument, "/")
	if !ok {
		return nil, fmt.Errorf("%s is neither a file nor KIND/NAME", argument)
	}
	kind, err := c.mapper.KindFor(schema.ParseGroupResource(strings.ToLower(resource)).WithVersion(""))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	isNamespaced, err := c.client.IsObjectNamespaced(object)
	if isNamespaced {
		object.SetNamespace(namespace)
	}
	return object, err
}

// statusLine computes the status of a live object, which is nil if it does not exist.
func statusLine(object, live *unstructured.Unstructured) line {
	line := newID(object).line("status")
	line["status"], line["message"] = status.NotFoundStatus, ""
	if live != nil {
		computed, err := status.Compute(live)
		if err != nil {
			computed = &status.Result{Status: status.UnknownStatus, Message: err.Error()}
		}
		line["status"], line["message"] = computed.Status, computed.Message
	}
	return line
}

// watchStatus prints every change of an object's status until the context ends.
func watchStatus(ctx context.Context, cluster *cluster, object *unstructured.Unstructured) {
	var last line
	show := func(live *unstructured.Unstructured) {
		line := statusLine(object, live)
		if line["status"] != last["status"] || line["message"] != last["message"] {
			last = line
			line.emit()
		}
	}
	for ctx.Err() == nil {
		if err := follow(ctx, cluster, object, show); err != nil && ctx.Err() == nil {
			line{"event": "error", "message": err.Error()}.emit()
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// follow shows an object and each change of it, until the watch ends. It returns early if the kind does not exist.
func follow(ctx context.Context, cluster *cluster, object *unstructured.Unstructured, show func(*unstructured.Unstructured)) error {
	live, err := cluster.get(ctx, object)
	if err != nil {
		return err
	}
	show(live)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind())
	// Without a resourceVersion, the watch starts with the current state.
	changes, err := cluster.client.Watch(ctx, list, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{"metadata.name": object.GetName()})
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		live, ok := change.Object.(*unstructured.Unstructured)
		switch {
		case change.Type == watch.Error || !ok:
			return fmt.Errorf("%s: watch failed: %v", newID(object), change.Object)
		case change.Type == watch.Deleted:
			show(nil)
		default:
			show(live)
		}
	}
	return nil
}
