package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// fill sets every field of the value of a pointer deterministically, so that a lost field is detected, and so is a new one of a
// later Cluster API. A string is the name of its field, a number is the count of earlier ones, bytes are a JSON object, a list has
// one item, a map the key "key", and a recursive type is not filled a second time. The client sets kind and apiVersion of a
// request, and those of a response are omitted, as by servers in Go.
func fill(pointer any) {
	filler := filler{}
	filler.fill(reflect.ValueOf(pointer).Elem(), "")
}

type filler struct {
	numbers int64
	within  []reflect.Type
}

func (filler *filler) fill(value reflect.Value, name string) {
	if fixed := fixed(value.Interface()); fixed != nil {
		value.Set(reflect.ValueOf(fixed))
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(name)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		filler.numbers++
		value.SetInt(filler.numbers)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		filler.numbers++
		value.SetUint(uint64(filler.numbers))
	case reflect.Float32, reflect.Float64:
		filler.numbers++
		value.SetFloat(float64(filler.numbers) + 0.5)
	case reflect.Pointer:
		if !filler.isWithin(value.Type().Elem()) {
			value.Set(reflect.New(value.Type().Elem()))
			filler.fill(value.Elem(), name)
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			// In base64 this has both characters that the URL variant replaces.
			value.SetBytes(fmt.Appendf(nil, "{%q:\"~~~~????\"}", name))
		} else if !filler.isWithin(value.Type().Elem()) {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			filler.fill(value.Index(0), name)
		}
	case reflect.Map:
		if !filler.isWithin(value.Type().Elem()) {
			element := reflect.New(value.Type().Elem()).Elem()
			filler.fill(element, "value")
			value.Set(reflect.MakeMap(value.Type()))
			value.SetMapIndex(reflect.ValueOf("key").Convert(value.Type().Key()), element)
		}
	case reflect.Struct:
		filler.fillStruct(value)
	default:
		panic(fmt.Sprintf("no value for %s of %s", name, value.Type()))
	}
}

func (filler *filler) fillStruct(value reflect.Value) {
	filler.within = append(filler.within, value.Type())
	for index := range value.NumField() {
		field := value.Type().Field(index)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[metav1.TypeMeta]():
			if len(filler.within) > 1 {
				value.Field(index).Set(reflect.ValueOf(metav1.TypeMeta{
					APIVersion: clusterv1.GroupVersion.String(),
					Kind:       value.Type().Name(),
				}))
			}
		case field.IsExported() && name != "-":
			filler.fill(value.Field(index), name)
		}
	}
	filler.within = filler.within[:len(filler.within)-1]
}

func (filler *filler) isWithin(entered reflect.Type) bool {
	return slices.Contains(filler.within, entered)
}

// fixed returns a valid value of a type that does not accept arbitrary text, or nil.
func fixed(value any) any {
	object := []byte(`{"apiVersion":"example.com/v1","kind":"Example","metadata":{"name":"example"},"spec":{"fraction":0.5}}`)
	switch value.(type) {
	case runtimehooksv1.ResponseStatus:
		return runtimehooksv1.ResponseStatusSuccess
	case runtimehooksv1.FailurePolicy:
		return runtimehooksv1.FailurePolicyIgnore
	case runtimehooksv1.PatchType:
		return runtimehooksv1.JSONMergePatchType
	case metav1.Time:
		return metav1.NewTime(time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC))
	case intstr.IntOrString:
		return intstr.FromString("25%")
	case runtime.RawExtension:
		return runtime.RawExtension{Raw: object}
	case apiextensionsv1.JSON:
		return apiextensionsv1.JSON{Raw: object}
	case metav1.FieldsV1:
		return metav1.FieldsV1{Raw: object}
	}
	return nil
}
