package main

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

const group = "sample.windlass.dev"

// WidgetV1 is a Widget at v1, the version that all others are converted to: its size is spec.size.
type WidgetV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	Spec              WidgetV1Spec `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty,omitzero"`
}

type WidgetV1Spec struct {
	Size  *int64 `json:"size,omitempty"`
	Color string `json:"color,omitempty"`
}

// WidgetV1beta1 is a Widget at v1beta1: its size is spec.width, in decimal digits.
type WidgetV1beta1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	Spec              WidgetV1beta1Spec `json:"spec"`
	Status            WidgetStatus      `json:"status,omitempty,omitzero"`
}

type WidgetV1beta1Spec struct {
	Width string `json:"width,omitempty"`
	Color string `json:"color,omitempty"`
}

// WidgetV2 is a Widget at v2: its size is spec.dimensions.size.
type WidgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	Spec              WidgetV2Spec `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty,omitzero"`
}

type WidgetV2Spec struct {
	Dimensions *Dimensions `json:"dimensions,omitempty"`
	Color      string      `json:"color,omitempty"`
}

type Dimensions struct {
	Size *int64 `json:"size,omitempty"`
}

type WidgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

var (
	_ conversion.Hub         = &WidgetV1{}
	_ conversion.Convertible = &WidgetV1beta1{}
	_ conversion.Convertible = &WidgetV2{}
)

// addToScheme adds the kind in the versions of a release.
func addToScheme(scheme *runtime.Scheme, versions []string) error {
	types := map[string]runtime.Object{"v1": &WidgetV1{}, "v1beta1": &WidgetV1beta1{}, "v2": &WidgetV2{}}
	for _, version := range versions {
		object, known := types[version]
		if !known {
			return fmt.Errorf("--versions: there is no version %q", version)
		}
		groupVersion := schema.GroupVersion{Group: group, Version: version}
		scheme.AddKnownTypeWithName(groupVersion.WithKind("Widget"), object)
		metav1.AddToGroupVersion(scheme, groupVersion)
	}
	return nil
}

// Hub marks the version that others are converted to.
func (*WidgetV1) Hub() {}

// ConvertTo converts the Widget to v1.
func (widget *WidgetV1beta1) ConvertTo(hub conversion.Hub) error {
	to := hub.(*WidgetV1)
	to.ObjectMeta, to.Status = widget.ObjectMeta, widget.Status
	to.Spec.Color = widget.Spec.Color
	if widget.Spec.Width != "" {
		size, err := strconv.ParseInt(widget.Spec.Width, 10, 64)
		if err != nil {
			return fmt.Errorf("spec.width is not an integer in a string: %w", err)
		}
		to.Spec.Size = &size
	}
	return nil
}

// ConvertFrom converts the Widget from v1.
func (widget *WidgetV1beta1) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*WidgetV1)
	widget.ObjectMeta, widget.Status = from.ObjectMeta, from.Status
	widget.Spec.Color = from.Spec.Color
	if from.Spec.Size != nil {
		widget.Spec.Width = strconv.FormatInt(*from.Spec.Size, 10)
	}
	return nil
}

// ConvertTo converts the Widget to v1.
func (widget *WidgetV2) ConvertTo(hub conversion.Hub) error {
	to := hub.(*WidgetV1)
	to.ObjectMeta, to.Status = widget.ObjectMeta, widget.Status
	to.Spec.Color = widget.Spec.Color
	if widget.Spec.Dimensions != nil {
		to.Spec.Size = widget.Spec.Dimensions.Size
	}
	return nil
}

// ConvertFrom converts the Widget from v1.
func (widget *WidgetV2) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*WidgetV1)
	widget.ObjectMeta, widget.Status = from.ObjectMeta, from.Status
	widget.Spec.Color = from.Spec.Color
	if from.Spec.Size != nil {
		widget.Spec.Dimensions = &Dimensions{Size: from.Spec.Size}
	}
	return nil
}

// DeepCopyObject copies the Widget.
func (widget *WidgetV1) DeepCopyObject() runtime.Object {
	copied := *widget
	widget.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Size = copySize(widget.Spec.Size)
	return &copied
}

// DeepCopyObject copies the Widget.
func (widget *WidgetV1beta1) DeepCopyObject() runtime.Object {
	copied := *widget
	widget.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// DeepCopyObject copies the Widget.
func (widget *WidgetV2) DeepCopyObject() runtime.Object {
	copied := *widget
	widget.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	if widget.Spec.Dimensions != nil {
		copied.Spec.Dimensions = &Dimensions{Size: copySize(widget.Spec.Dimensions.Size)}
	}
	return &copied
}

func copySize(size *int64) *int64 {
	if size == nil {
		return nil
	}
	copied := *size
	return &copied
}
