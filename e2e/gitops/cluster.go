package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// cluster reads objects of any kind.
type cluster struct {
	client client.WithWatch
	mapper meta.RESTMapper
}

// objectID identifies an object independently of its API version.
type objectID struct {
	kind            schema.GroupKind
	namespace, name string
}

func newCluster(config *rest.Config) (*cluster, error) {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, err
	}
	read, err := client.NewWithWatch(config, client.Options{HTTPClient: http, Mapper: mapper})
	return &cluster{client: read, mapper: mapper}, err
}

func newID(object *unstructured.Unstructured) objectID {
	return objectID{object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName()}
}

// String names the object as kubectl does: Deployment shop/web.
func (id objectID) String() string {
	if id.namespace == "" {
		return id.kind.Kind + " " + id.name
	}
	return fmt.Sprintf("%s %s/%s", id.kind.Kind, id.namespace, id.name)
}

// readFiles returns the objects in YAML files, and a digest of the files.
func readFiles(files []string) (objects []*unstructured.Unstructured, digest [sha256.Size]byte, err error) {
	var all []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, digest, err
		}
		read, err := ssautil.ReadObjects(bytes.NewReader(content))
		if err != nil {
			return nil, digest, fmt.Errorf("%s: %w", file, err)
		}
		objects, all = append(objects, read...), append(all, content...)
	}
	return objects, sha256.Sum256(all), nil
}

// setNamespaces sets the namespace "default" where it is missing. It skips kinds that are not served yet.
func (c *cluster) setNamespaces(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		isNamespaced, err := c.client.IsObjectNamespaced(object)
		if err == nil && isNamespaced && object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
	}
}

// get returns the live object, or nil if the object or its kind does not exist.
func (c *cluster) get(ctx context.Context, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := c.client.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", newID(wanted), err)
	}
	return live, nil
}

// isAbsent reports whether an object or its kind does not exist.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// getAll returns the live objects; objects that do not exist are missing in the result.
func (c *cluster) getAll(ctx context.Context, wanted []*unstructured.Unstructured) (map[objectID]*unstructured.Unstructured, error) {
	found := map[objectID]*unstructured.Unstructured{}
	for _, object := range wanted {
		live, err := c.get(ctx, object)
		if err != nil {
			return nil, err
		}
		if live != nil {
			found[newID(object)] = live
		}
	}
	return found, nil
}

// writers returns the field managers that wrote an object between two reads, with the subresource: "windlass (status)".
// It misses an update that only removes fields.
func writers(before, after *unstructured.Unstructured) []string {
	known := map[string]bool{}
	read := func(object *unstructured.Unstructured, visit func(name, write string)) {
		if object == nil {
			return
		}
		for _, entry := range object.GetManagedFields() {
			name := entry.Manager
			if entry.Subresource != "" {
				name += " (" + entry.Subresource + ")"
			}
			visit(name, fmt.Sprint(name, entry.Operation, entry.Time))
		}
	}
	read(before, func(_, write string) { known[write] = true })
	var names []string
	read(after, func(name, write string) {
		if !known[write] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names
}
