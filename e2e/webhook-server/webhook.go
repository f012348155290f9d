package main

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The annotation that the mutating webhook sets.
const mutated = "sample.windlass.dev/mutated"

// Paths of admission webhooks that differ from the defaults of controller-runtime.
type paths struct {
	mutate, validate string
}

// setupWidgetWebhook registers all three kinds of webhooks, the conversion webhook at /convert.
func setupWidgetWebhook(manager ctrl.Manager, at paths) error {
	builder := ctrl.NewWebhookManagedBy(manager, &WidgetV1{}).
		WithDefaulter(widgetDefaulter{}).
		WithValidator(widgetValidator{})
	if at.mutate != "" {
		builder = builder.WithDefaulterCustomPath(at.mutate)
	}
	if at.validate != "" {
		builder = builder.WithValidatorCustomPath(at.validate)
	}
	return builder.Complete()
}

type widgetDefaulter struct{}

// Default marks a Widget, and gives it a color if it has none.
func (widgetDefaulter) Default(_ context.Context, widget *WidgetV1) error {
	if widget.Annotations == nil {
		widget.Annotations = map[string]string{}
	}
	widget.Annotations[mutated] = "true"
	if widget.Spec.Color == "" {
		widget.Spec.Color = "blue"
	}
	return nil
}

type widgetValidator struct{}

func (widgetValidator) ValidateCreate(_ context.Context, widget *WidgetV1) (admission.Warnings, error) {
	return nil, validate(widget)
}

func (widgetValidator) ValidateUpdate(_ context.Context, _, widget *WidgetV1) (admission.Warnings, error) {
	return nil, validate(widget)
}

func (widgetValidator) ValidateDelete(context.Context, *WidgetV1) (admission.Warnings, error) {
	return nil, nil
}

func validate(widget *WidgetV1) error {
	if widget.Spec.Size != nil && *widget.Spec.Size < 0 {
		return errors.New("size must not be negative")
	}
	return nil
}
