package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/conversion"
)

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1.AddToScheme, runtimev1.AddToScheme, runtimev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// readConfig reads an ExtensionConfig in either version.
func readConfig(ctx context.Context, scheme *runtime.Scheme, path string) (*runtimev1.ExtensionConfig, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode(content, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch config := object.(type) {
	case *runtimev1.ExtensionConfig:
		return config, nil
	case *runtimev1alpha1.ExtensionConfig:
		converted := &runtimev1.ExtensionConfig{}
		err := conversion.ConvertExtensionConfigV1Alpha1ToHub(ctx, config, converted)
		return converted, err
	default:
		return nil, fmt.Errorf("%s: must be an ExtensionConfig, not %T", path, object)
	}
}
