package main

import (
	"context"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/extensionconfig"
	runtimeclient "sigs.k8s.io/cluster-api/internal/runtime/client"
	runtimeregistry "sigs.k8s.io/cluster-api/internal/runtime/registry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

type registration struct {
	Name              string                  `json:"name"`
	ExtensionConfig   string                  `json:"extensionConfig"`
	APIVersion        string                  `json:"apiVersion"`
	Hook              string                  `json:"hook"`
	NamespaceSelector string                  `json:"namespaceSelector"`
	TimeoutSeconds    int32                   `json:"timeoutSeconds"`
	FailurePolicy     runtimev1.FailurePolicy `json:"failurePolicy"`
	Settings          map[string]string       `json:"settings"`
	ClientConfig      runtimev1.ClientConfig  `json:"clientConfig"`
}

func discovered(ctx context.Context, arguments []string) error {
	var path string
	flags := newFlags("discovered")
	flags.StringVar(&path, "extension-config", "", "The file of the ExtensionConfig, with its status.")
	parse(flags, arguments, "extension-config")

	scheme, err := newScheme()
	if err != nil {
		return err
	}
	config, err := readConfig(ctx, scheme, path)
	if err != nil {
		return err
	}
	catalog, err := newCatalog()
	if err != nil {
		return err
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config).Build()
	registry := runtimeregistry.New()
	reader, _, err := runtimeclient.New(ctx, runtimeclient.Options{Catalog: catalog, Registry: registry, Client: cluster})
	if err != nil {
		return err
	}
	// A reader only reconciles after its registry is warm.
	if err := reader.WarmUp(&runtimev1.ExtensionConfigList{}); err != nil {
		return err
	}
	reconciler := extensionconfig.Reconciler{Client: cluster, APIReader: cluster, RuntimeClient: reader, ReadOnly: true}
	_, refusal := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})

	registered := []registration{}
	for _, handler := range config.Status.Handlers {
		found, err := registry.Get(handler.Name)
		if err != nil {
			continue
		}
		registered = append(registered, registration{
			found.Name, found.ExtensionConfigName, found.GroupVersionHook.GroupVersion().String(), found.GroupVersionHook.Hook,
			found.NamespaceSelector.String(), found.TimeoutSeconds, found.FailurePolicy, found.Settings, found.ClientConfig,
		})
	}
	printLine(struct {
		Registered []registration `json:"registered"`
		Error      string         `json:"error,omitempty"`
	}{registered, message(refusal)})
	return nil
}
