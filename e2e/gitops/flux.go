package main

import (
	"context"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// fluxManager is the field manager of Flux.
	fluxManager = "kustomize-controller"
	fluxGroup   = "kustomize.toolkit.fluxcd.io"
)

// flux applies objects with the resource manager of Flux and the settings of Flux' kustomize-controller.
type flux struct {
	cluster *cluster
	manager *ssa.ResourceManager
	timeout time.Duration
}

func newFlux(cluster *cluster, timeout time.Duration) *flux {
	poller := polling.NewStatusPoller(cluster.client, cluster.mapper, polling.Options{})
	manager := ssa.NewResourceManager(cluster.client, poller, ssa.Owner{Field: fluxManager, Group: fluxGroup})
	return &flux{cluster, manager, timeout}
}

func (f *flux) drift(ctx context.Context, objects []*unstructured.Unstructured) ([]drift, error) {
	if err := normalize.UnstructuredList(objects); err != nil {
		return nil, err
	}
	f.manager.SetOwnerLabels(objects, "gitops", "flux-system")
	var found []drift
	for _, object := range objects {
		// Without the object, the kind or the namespace may be missing too, and a dry run would fail.
		live, err := f.cluster.get(ctx, object)
		if err != nil {
			return found, err
		}
		if live == nil {
			found = append(found, drift{id: newID(object), isMissing: true})
			continue
		}
		entry, old, new, err := f.manager.Diff(ctx, object.DeepCopy(), ssa.DefaultDiffOptions())
		if err != nil {
			return found, err
		}
		if entry.Action == ssa.ConfiguredAction {
			found = append(found, drift{id: newID(object), fields: differences(old, new)})
		}
	}
	return found, nil
}

func (f *flux) sync(ctx context.Context, objects []*unstructured.Unstructured, _ bool) (map[objectID]result, []error) {
	options := ssa.DefaultApplyOptions()
	options.ExclusionSelector = map[string]string{fluxGroup + "/reconcile": "disabled", fluxGroup + "/ssa": "Ignore"}
	options.IfNotPresentSelector = map[string]string{fluxGroup + "/ssa": "IfNotPresent"}
	options.ForceSelector = map[string]string{fluxGroup + "/force": "enabled"}
	// Flux takes over, and so reverts, what kubectl has written.
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: fluxManager, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{fluxGroup + "/ssa": "Merge"},
	}
	changes, err := f.manager.ApplyAllStaged(ctx, objects, options)
	synced := map[objectID]result{}
	for _, entry := range changes.Entries {
		id := objectID{entry.ObjMetadata.GroupKind, entry.ObjMetadata.Namespace, entry.ObjMetadata.Name}
		synced[id] = result{action: string(entry.Action)}
	}
	if err == nil && f.timeout > 0 {
		err = f.manager.WaitForSetWithContext(ctx, changes.ToObjMetadataSet(),
			ssa.WaitOptions{Interval: time.Second, Timeout: f.timeout, FailFast: true})
	}
	if err != nil {
		return synced, []error{err}
	}
	return synced, nil
}

func (f *flux) wrote(result result, _, _ *unstructured.Unstructured) bool {
	return result.action == string(ssa.CreatedAction) || result.action == string(ssa.ConfiguredAction)
}
