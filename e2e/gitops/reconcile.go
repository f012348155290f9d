package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// engine is a GitOps engine.
type engine interface {
	// drift returns the objects that differ from the files.
	drift(ctx context.Context, objects []*unstructured.Unstructured) ([]drift, error)
	// sync applies the objects; isNew reports whether the files have changed. It returns the applied objects, and the
	// errors of the others.
	sync(ctx context.Context, objects []*unstructured.Unstructured, isNew bool) (map[objectID]result, []error)
	// wrote reports whether this engine, and not another client, wrote an object between two reads.
	wrote(result result, before, after *unstructured.Unstructured) bool
}

// drift is an object that differs from the files.
type drift struct {
	id        objectID
	isMissing bool
	fields    []difference
}

// result is what an engine reports about an applied object.
type result struct {
	action, message string
}

// line is a line of output.
type line map[string]any

// totals are the counts of the summary.
type totals struct {
	passes, fights, errors int
	// writes are the fights of each object: writes although it was synced from the current files before.
	writes map[string]int
	// synced are the objects that were synced from the current files.
	synced map[objectID]bool
}

var output sync.Mutex

func (l line) emit() {
	output.Lock()
	defer output.Unlock()
	l["time"] = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	_ = json.NewEncoder(os.Stdout).Encode(l)
}

func (id objectID) line(event string) line {
	return line{"event": event, "kind": id.kind.Kind, "namespace": id.namespace, "name": id.name}
}

// reconcile syncs the files every interval until the context ends, then prints the summary.
func reconcile(ctx context.Context, cluster *cluster, engine engine, interval time.Duration, files []string) error {
	total := totals{writes: map[string]int{}, synced: map[objectID]bool{}}
	var digest [32]byte
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		objects, current, err := readFiles(files)
		if err != nil {
			return err
		}
		isNew := current != digest
		if isNew {
			digest = current
			clear(total.synced)
		}
		total.pass(ctx, cluster, engine, objects, isNew)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	line{
		"event": "summary", "passes": total.passes, "fights": total.fights, "writes": total.writes, "errors": total.errors,
	}.emit()
	if total.errors > 0 {
		return errors.New("passes had errors")
	}
	return nil
}

// pass detects drift, syncs, and reports what has changed. A pass that is interrupted does not count.
func (t *totals) pass(ctx context.Context, cluster *cluster, engine engine, objects []*unstructured.Unstructured, isNew bool) {
	number, written, problems := t.passes+1, 0, 0
	report := func(err error) {
		if ctx.Err() == nil {
			problems++
			line{"event": "error", "pass": number, "message": err.Error()}.emit()
		}
	}
	cluster.setNamespaces(objects)
	drifted, err := engine.drift(ctx, objects)
	if err != nil {
		report(err)
	}
	for _, drift := range drifted {
		entry := drift.id.line("drift")
		entry["pass"], entry["missing"], entry["fields"] = number, drift.isMissing, drift.fields
		entry.emit()
	}
	before, err := cluster.getAll(ctx, objects)
	if err != nil {
		report(err)
	}
	results, failures := engine.sync(ctx, objects, isNew)
	for _, failure := range failures {
		report(failure)
	}
	// This sync may have created the kinds of other objects.
	cluster.setNamespaces(objects)
	after, err := cluster.getAll(ctx, objects)
	if err != nil {
		report(err)
	}
	if ctx.Err() != nil {
		return
	}
	for _, object := range objects {
		id := newID(object)
		result, ok := results[id]
		if !ok {
			continue
		}
		old, new := before[id], after[id]
		entry := id.line("applied")
		entry["pass"], entry["action"], entry["message"] = number, result.action, result.message
		if version(old) != version(new) {
			entry["before"], entry["after"], entry["by"] = version(old), version(new), writers(old, new)
			if old != nil && new != nil {
				entry["fields"] = differences(old, new)
			}
		}
		if engine.wrote(result, old, new) {
			written++
			if t.synced[id] {
				entry["fight"] = true
				t.fights++
				t.writes[id.String()]++
			}
		}
		t.synced[id] = true
		entry.emit()
	}
	t.passes++
	t.errors += problems
	line{
		"event": "pass", "pass": number, "objects": len(objects), "drifted": len(drifted), "written": written, "errors": problems,
	}.emit()
}

func version(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return object.GetResourceVersion()
}
