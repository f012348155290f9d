package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// How Cluster API calls a hook.
const (
	// All registered handlers.
	all = true
	// The handler that a ClusterClass names, or the only registered one.
	one = false
)

// All hooks except Discovery, which the server answers itself.
var hooks = []hook{
	define(runtimehooksv1.BeforeClusterCreate, all),
	define(runtimehooksv1.AfterControlPlaneInitialized, all),
	define(runtimehooksv1.BeforeClusterUpgrade, all),
	define(runtimehooksv1.BeforeControlPlaneUpgrade, all),
	define(runtimehooksv1.AfterControlPlaneUpgrade, all),
	define(runtimehooksv1.BeforeWorkersUpgrade, all),
	define(runtimehooksv1.AfterWorkersUpgrade, all),
	define(runtimehooksv1.AfterClusterUpgrade, all),
	define(runtimehooksv1.BeforeClusterDelete, all),
	define(runtimehooksv1.GeneratePatches, one),
	define(runtimehooksv1.ValidateTopology, one),
	define(runtimehooksv1.DiscoverVariables, one),
	define(runtimehooksv1.GenerateUpgradePlan, one),
	define(runtimehooksv1.CanUpdateMachine, one),
	define(runtimehooksv1.CanUpdateMachineSet, one),
	define(runtimehooksv1.UpdateMachine, one),
}

type hook struct {
	name        string
	function    runtimecatalog.Hook
	isCalledAll bool
	newRequest  func() runtimehooksv1.RequestObject
	newResponse func() runtimehooksv1.ResponseObject
	// The server only accepts functions with the types of the hook.
	newHandler func(answer answer) runtimecatalog.Hook
}

type answer func(runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject)

func define[Request, Response any, RequestPointer interface {
	*Request
	runtimehooksv1.RequestObject
}, ResponsePointer interface {
	*Response
	runtimehooksv1.ResponseObject
}](function func(RequestPointer, ResponsePointer), isCalledAll bool) hook {
	return hook{
		name:        runtimecatalog.HookName(function),
		function:    function,
		isCalledAll: isCalledAll,
		newRequest:  func() runtimehooksv1.RequestObject { return RequestPointer(new(Request)) },
		newResponse: func() runtimehooksv1.ResponseObject { return ResponsePointer(new(Response)) },
		newHandler: func(answer answer) runtimecatalog.Hook {
			return func(_ context.Context, request RequestPointer, response ResponsePointer) { answer(request, response) }
		},
	}
}

var innerCapital = regexp.MustCompile("(.)([A-Z])")

func (hook hook) handlerName() string {
	return strings.ToLower(innerCapital.ReplaceAllString(hook.name, "$1-$2"))
}

// newCatalog fails when Cluster API has hooks that are not listed here.
func newCatalog() (*runtimecatalog.Catalog, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, err
	}
	for known, descriptor := range catalog.AllKnownHooks() {
		isListed := slices.ContainsFunc(hooks, func(hook hook) bool { return hook.name == known.Hook })
		if !isListed && !descriptor.Metadata.Singleton {
			return nil, fmt.Errorf("hook %s is not listed in hooks.go", known)
		}
	}
	return catalog, nil
}

func printCatalog(_ context.Context, arguments []string) error {
	parse(newFlags("catalog"), arguments)
	catalog, err := newCatalog()
	if err != nil {
		return err
	}
	known := catalog.AllKnownHooks()
	names := []runtimecatalog.GroupVersionHook{}
	for name := range known {
		names = append(names, name)
	}
	slices.SortFunc(names, func(one, other runtimecatalog.GroupVersionHook) int {
		return strings.Compare(one.String(), other.String())
	})
	for _, name := range names {
		request, err := catalog.NewRequest(name)
		if err != nil {
			return err
		}
		response, err := catalog.NewResponse(name)
		if err != nil {
			return err
		}
		fill(request)
		fill(response)
		descriptor := known[name]
		printLine(struct {
			APIVersion   string         `json:"apiVersion"`
			Hook         string         `json:"hook"`
			Path         string         `json:"path"`
			RequestKind  string         `json:"requestKind"`
			ResponseKind string         `json:"responseKind"`
			Summary      string         `json:"summary"`
			Description  string         `json:"description"`
			Tags         []string       `json:"tags"`
			Deprecated   bool           `json:"deprecated"`
			Singleton    bool           `json:"singleton"`
			Request      runtime.Object `json:"request"`
			Response     runtime.Object `json:"response"`
		}{
			name.GroupVersion().String(), name.Hook, runtimecatalog.GVHToPath(name, ""),
			descriptor.Request.Kind, descriptor.Response.Kind,
			descriptor.Metadata.Summary, descriptor.Metadata.Description, descriptor.Metadata.Tags,
			descriptor.Metadata.Deprecated, descriptor.Metadata.Singleton, request, response,
		})
	}
	return nil
}
