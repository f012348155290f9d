package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// difference is a field with two values.
type difference struct {
	Field string `json:"field"`
	Old   any    `json:"old"`
	New   any    `json:"new"`
}

// maxValue is the length in bytes to which a value is truncated.
const maxValue = 500

// differences compares two states of an object, without the status and the metadata that the API server sets.
func differences(old, new *unstructured.Unstructured) []difference {
	normalize := func(object *unstructured.Unstructured) map[string]any {
		copied := object.DeepCopy()
		delete(copied.Object, "status")
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
			unstructured.RemoveNestedField(copied.Object, "metadata", field)
		}
		return copied.Object
	}
	found := compare("", normalize(old), normalize(new))
	for index := range found {
		field := &found[index]
		if old.GetKind() == "Secret" {
			field.Old, field.New = "(secret)", "(secret)"
		}
		field.Old, field.New = truncate(field.Old), truncate(field.New)
	}
	return found
}

// compare returns the innermost fields that differ. Lists of different lengths are compared as a whole.
func compare(path string, old, new any) []difference {
	if reflect.DeepEqual(old, new) {
		return nil
	}
	var found []difference
	if old, ok := old.(map[string]any); ok {
		if new, ok := new.(map[string]any); ok {
			all := maps.Clone(old)
			maps.Copy(all, new)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				inner := name
				if path != "" {
					inner = path + "." + name
				}
				found = append(found, compare(inner, old[name], new[name])...)
			}
			return found
		}
	}
	if old, ok := old.([]any); ok {
		if new, ok := new.([]any); ok && len(old) == len(new) {
			for index := range old {
				found = append(found, compare(fmt.Sprintf("%s[%d]", path, index), old[index], new[index])...)
			}
			return found
		}
	}
	return []difference{{path, old, new}}
}

func truncate(value any) any {
	text, err := json.Marshal(value)
	if err != nil || len(text) <= maxValue {
		return value
	}
	return string(text[:maxValue]) + "…"
}
