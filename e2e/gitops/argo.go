package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	argoengine "github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	// argoManager is the field manager of Argo CD.
	argoManager = "argocd-controller"
	// argoApplicationManager is the field manager of Argo CD for roles and bindings.
	argoApplicationManager = "argocd-application-controller"
	// trackingID is the annotation with which Argo CD marks the objects of an application.
	trackingID  = "argocd.argoproj.io/tracking-id"
	application = "gitops"
)

// argo applies objects with the engine of Argo CD and the settings of Argo CD's application controller.
type argo struct {
	serverSide, prune, onlyDrifted bool

	config *rest.Config
	cache  cache.ClusterCache
	engine argoengine.GitOpsEngine
	// drifted are the objects that the last diff found out of sync.
	drifted map[objectID]bool
}

// withoutStatus removes the status before a comparison, as Argo CD does by default.
type withoutStatus struct{}

func (withoutStatus) Normalize(object *unstructured.Unstructured) error {
	delete(object.Object, "status")
	return nil
}

// useCacheFolder redirects the cache of the engine's kubectl from the home folder to a temporary one.
func useCacheFolder() (cleanup func(), err error) {
	folder, err := os.MkdirTemp("", "gitops-")
	if err != nil {
		return nil, err
	}
	return func() { _ = os.RemoveAll(folder) }, os.Setenv("KUBECACHEDIR", folder)
}

func newArgo(config *rest.Config) (*argo, error) {
	objects := cache.NewClusterCache(config, cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (info any, cacheManifest bool) {
			mark := object.GetAnnotations()[trackingID]
			return mark, strings.HasPrefix(mark, application+":")
		}))
	a := &argo{config: config, cache: objects, engine: argoengine.NewEngine(config, objects, argoengine.WithLogr(logr.Discard()))}
	_, err := a.engine.Run()
	return a, err
}

// mark returns the value of the tracking annotation.
func mark(key kube.ResourceKey) string {
	return fmt.Sprintf("%s:%s/%s:%s/%s", application, key.Group, key.Kind, key.Namespace, key.Name)
}

func isManaged(resource *cache.Resource) bool {
	return resource.Info == mark(resource.ResourceKey())
}

func (a *argo) drift(_ context.Context, objects []*unstructured.Unstructured) ([]drift, error) {
	a.drifted = map[objectID]bool{}
	for _, object := range objects {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[trackingID] = mark(kube.GetResourceKey(object))
		object.SetAnnotations(annotations)
	}
	live, err := a.cache.GetManagedLiveObjs(objects, isManaged)
	if err != nil {
		return nil, err
	}
	pairs := sync.Reconcile(objects, live, "", a.cache)
	options := []diff.Option{
		diff.WithNormalizer(withoutStatus{}), diff.WithLogr(logr.Discard()),
		diff.WithGVKParser(a.cache.GetGVKParser()), diff.WithManager(argoManager),
	}
	if a.serverSide {
		// Argo CD's default for applications with ServerSideApply=true.
		kubectl := kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
		dryRuns, cleanup, err := kubectl.ManageServerSideDiffDryRuns(a.config)
		if err != nil {
			return nil, err
		}
		defer cleanup()
		runner := diff.NewK8sServerSideDryRunner(dryRuns)
		options = append(options, diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(runner))
	}
	compared, err := diff.DiffArray(pairs.Target, pairs.Live, options...)
	if err != nil {
		return nil, err
	}
	var found []drift
	for index, pair := range compared.Diffs {
		target, live := pairs.Target[index], pairs.Live[index]
		if target == nil {
			// Removed from the files.
			found = append(found, drift{id: newID(live)})
			continue
		}
		if live != nil && !pair.Modified {
			continue
		}
		entry := drift{id: newID(target), isMissing: live == nil}
		if live != nil {
			var old, new unstructured.Unstructured
			if err := json.Unmarshal(pair.NormalizedLive, &old.Object); err != nil {
				return nil, err
			}
			if err := json.Unmarshal(pair.PredictedLive, &new.Object); err != nil {
				return nil, err
			}
			entry.fields = differences(&old, &new)
		}
		a.drifted[entry.id] = true
		found = append(found, entry)
	}
	return found, nil
}

func (a *argo) sync(ctx context.Context, objects []*unstructured.Unstructured, isNew bool) (map[objectID]result, []error) {
	if a.onlyDrifted && !isNew && len(a.drifted) == 0 && !a.prune {
		return nil, nil
	}
	options := []sync.SyncOpt{
		sync.WithLogr(logr.Discard()), sync.WithManifestValidation(true),
		sync.WithOperationSettings(false, a.prune, false, false),
		sync.WithServerSideApply(a.serverSide), sync.WithServerSideApplyManager(argoManager),
		sync.WithClientSideApplyMigration(true, common.DefaultClientSideApplyMigrationManager),
		sync.WithResourcesFilter(func(key kube.ResourceKey, target, _ *unstructured.Unstructured) bool {
			return !a.onlyDrifted || isNew || target == nil || a.drifted[newIDOfKey(key)]
		}),
	}
	synced, failed := a.syncOnce(ctx, objects, options)
	if len(failed) > 0 {
		// Argo CD retries too. The first attempt does not find kinds that it has created itself.
		var again map[objectID]result
		again, failed = a.syncOnce(ctx, objects, options)
		for id, result := range again {
			if _, ok := synced[id]; !ok {
				synced[id] = result
			}
		}
	}
	return synced, failed
}

func (a *argo) syncOnce(ctx context.Context, objects []*unstructured.Unstructured, options []sync.SyncOpt) (map[objectID]result, []error) {
	reports, err := a.engine.Sync(ctx, objects, isManaged, "", "", options...)
	synced := map[objectID]result{}
	var failed []error
	if err != nil {
		failed = append(failed, err)
	}
	for _, report := range reports {
		id := newIDOfKey(report.ResourceKey)
		if report.Status == common.ResultCodeSyncFailed {
			failed = append(failed, fmt.Errorf("%s: %s", id, report.Message))
		} else {
			synced[id] = result{strings.ToLower(string(report.Status)), report.Message}
		}
	}
	return synced, failed
}

func (a *argo) wrote(result result, before, after *unstructured.Unstructured) bool {
	if version(before) == version(after) {
		return false
	}
	by := writers(before, after)
	if slices.Contains(by, argoManager) || slices.Contains(by, argoApplicationManager) {
		return true
	}
	if a.serverSide || !strings.Contains(result.message, " configured") {
		return false
	}
	// kubectl prints this also for a patch that changes nothing. An update that only removes fields names no writer, and
	// leaves no difference if another client has restored them.
	return before == nil || after == nil || len(by) == 0 || len(differences(before, after)) == 0
}

func newIDOfKey(key kube.ResourceKey) objectID {
	return objectID{schema.GroupKind{Group: key.Group, Kind: key.Kind}, key.Namespace, key.Name}
}
