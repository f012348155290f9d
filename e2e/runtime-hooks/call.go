package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	hookclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	runtimeclient "sigs.k8s.io/cluster-api/internal/runtime/client"
	runtimeregistry "sigs.k8s.io/cluster-api/internal/runtime/registry"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The object that hooks are called for.
var cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cluster"}}

func call(ctx context.Context, arguments []string) error {
	var paths []string
	var requests, namespaceLabels, services, certificate, key string
	flags := newFlags("call")
	flags.Func("extension-config", "The file of an ExtensionConfig; repeatable.", func(path string) error {
		paths = append(paths, path)
		return nil
	})
	flags.StringVar(&requests, "requests", "", "The folder of requests, each <Hook>.json. Default: every field is set.")
	flags.StringVar(&namespaceLabels, "namespace-labels", "", "The labels of the object's namespace.")
	flags.StringVar(&services, "services-at", "", "The address of every Service. Default: resolved by DNS.")
	flags.StringVar(&certificate, "client-cert-file", "", "The client certificate, in PEM.")
	flags.StringVar(&key, "client-key-file", "", "Its private key, in PEM.")
	parse(flags, arguments, "extension-config")

	if services != "" {
		if err := sendTo(services); err != nil {
			return err
		}
	}
	labelled, err := labels.ConvertSelectorToLabelsMap(namespaceLabels)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	catalog, err := newCatalog()
	if err != nil {
		return err
	}
	registry := runtimeregistry.New()
	client, _, err := runtimeclient.New(ctx, runtimeclient.Options{
		CertFile: certificate,
		KeyFile:  key,
		Catalog:  catalog,
		Registry: registry,
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace, Labels: labelled},
		}).Build(),
	})
	if err != nil {
		return err
	}
	// Handlers can only be registered after the registry is warm.
	if err := client.WarmUp(&runtimev1.ExtensionConfigList{}); err != nil {
		return err
	}
	for _, path := range paths {
		config, err := readConfig(ctx, scheme, path)
		if err != nil {
			return err
		}
		register(ctx, client, config)
	}
	for _, hook := range hooks {
		if err := callHook(ctx, client, catalog, registry, hook, requests); err != nil {
			return err
		}
	}
	return nil
}

func register(ctx context.Context, client hookclient.Client, config *runtimev1.ExtensionConfig) {
	handlers := []runtimev1.ExtensionHandler{}
	discovered, err := client.Discover(ctx, config)
	if err == nil {
		handlers = discovered.Status.Handlers
		err = client.Register(discovered)
	}
	printLine(struct {
		ExtensionConfig string                       `json:"extensionConfig"`
		Handlers        []runtimev1.ExtensionHandler `json:"handlers"`
		Error           string                       `json:"error,omitempty"`
	}{config.Name, handlers, message(err)})
}

func callHook(
	ctx context.Context, client hookclient.Client, catalog *runtimecatalog.Catalog, registry runtimeregistry.ExtensionRegistry,
	hook hook, requests string,
) error {
	name, err := catalog.GroupVersionHook(hook.function)
	if err != nil {
		return err
	}
	registrations, err := registry.List(name.GroupHook())
	if err != nil {
		return err
	}
	handlers := []string{}
	for _, registration := range registrations {
		handlers = append(handlers, registration.Name)
	}
	slices.Sort(handlers)
	if hook.isCalledAll {
		handlers = append(handlers, "")
	}
	for _, handler := range handlers {
		request, response := hook.newRequest(), hook.newResponse()
		if err := readOrFill(requests, hook.name, request); err != nil {
			return err
		}
		var err error
		if handler == "" {
			err = client.CallAllExtensions(ctx, hook.function, cluster, request, response)
		} else {
			err = client.CallExtension(ctx, hook.function, cluster, handler, request, response)
		}
		printLine(struct {
			Hook     string                        `json:"hook"`
			Handler  string                        `json:"handler,omitempty"`
			Error    string                        `json:"error,omitempty"`
			Request  runtimehooksv1.RequestObject  `json:"request"`
			Response runtimehooksv1.ResponseObject `json:"response"`
		}{hook.name, handler, message(err), request, response})
	}
	return nil
}
