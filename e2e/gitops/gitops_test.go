package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestDifferencesAreTheInnermostFields(t *testing.T) {
	old := parse(t, `{kind: Deployment, metadata: {name: web, resourceVersion: "1"}, spec: {replicas: 5, list: [{a: 1}, {a: 2}],
		args: [x]}, status: {replicas: 5}}`)
	new := parse(t, `{kind: Deployment, metadata: {name: web, resourceVersion: "2", labels: {a.b/c: d}}, spec: {replicas: 2,
		list: [{a: 1}, {a: 3}], args: [x, y]}}`)
	fields := map[string]bool{}
	for _, field := range differences(old, new) {
		fields[field.Field] = true
	}
	expected := map[string]bool{"metadata.labels": true, "spec.replicas": true, "spec.list[1].a": true, "spec.args": true}
	if !reflect.DeepEqual(fields, expected) {
		t.Errorf("%v", fields)
	}
}

func TestDifferencesHideSecretsAndTruncateLongValues(t *testing.T) {
	secret := differences(parse(t, `{kind: Secret, data: {a: old}}`), parse(t, `{kind: Secret, data: {a: new}}`))
	if !reflect.DeepEqual(secret, []difference{{"data.a", "(secret)", "(secret)"}}) {
		t.Errorf("%v", secret)
	}
	long := parse(t, `{kind: ConfigMap, data: {a: `+strings.Repeat("x", 2*maxValue)+`}}`)
	found := differences(parse(t, `{kind: ConfigMap, data: {}}`), long)
	if text, ok := found[0].New.(string); !ok || len(text) > maxValue+len("…") {
		t.Errorf("%v", found)
	}
}

func TestWritersAreTheManagersWithANewEntryOrTime(t *testing.T) {
	before := parse(t, `{metadata: {managedFields: [
		{manager: flux, operation: Apply, time: "2026-01-01T00:00:00Z"},
		{manager: kubectl, operation: Update, time: "2026-01-01T00:00:00Z", fieldsV1: {"f:a": {}}}]}}`)
	after := parse(t, `{metadata: {managedFields: [
		{manager: flux, operation: Apply, time: "2026-01-01T00:01:00Z"},
		{manager: kubectl, operation: Update, time: "2026-01-01T00:00:00Z"},
		{manager: windlass, operation: Apply, subresource: status, time: "2026-01-01T00:01:00Z"}]}}`)
	if by := writers(before, after); !reflect.DeepEqual(by, []string{"flux", "windlass (status)"}) {
		t.Errorf("%v", by)
	}
	if by := writers(nil, after); len(by) != 3 {
		t.Errorf("%v", by)
	}
}

func TestArgoWroteWhatNoOtherClientExplains(t *testing.T) {
	at := func(version, bundle, managers string) *unstructured.Unstructured {
		return parse(t, `{kind: CustomResourceDefinition, metadata: {resourceVersion: "`+version+`", managedFields: [`+managers+`]},
			spec: {caBundle: `+bundle+`}}`)
	}
	const argocd = `{manager: argocd-controller, operation: Update, time: "2026-01-01T00:01:00Z"}`
	const injected = `{manager: windlass-inject, operation: Apply, time: "2026-01-01T00:01:00Z"}`
	before := at("1", "a", "")
	for name, test := range map[string]struct {
		message  string
		after    *unstructured.Unstructured
		expected bool
	}{
		"nothing was written":          {"a configured", before, false},
		"its manager":                  {"a configured", at("2", "b", argocd), true},
		"only fields were removed":     {"a configured", at("2", "b", ""), true},
		"another client restored them": {"a configured", at("3", "a", injected), true},
		"another client":               {"a configured", at("2", "b", injected), false},
		"another client, no patch":     {"a unchanged", at("2", "b", injected), false},
	} {
		if wrote := (&argo{}).wrote(result{message: test.message}, before, test.after); wrote != test.expected {
			t.Errorf("%s: %v", name, wrote)
		}
	}
}

func TestAStatusIsComputedAsByKstatus(t *testing.T) {
	for status, expected := range map[string]string{
		`{}`:                       "Current",
		`{observedGeneration: 1}`:  "InProgress",
		`{observedGeneration: -1}`: "InProgress",
		`{observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}`:                                   "Current",
		`{observedGeneration: 2, conditions: [{type: Ready, status: "False"}]}`:                                  "InProgress",
		`{observedGeneration: 2, conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True"}]}`: "Failed",
	} {
		object := parse(t, `{apiVersion: windlass.dev/v1alpha1, kind: BundleDeployment, metadata: {name: a, generation: 2}, status: `+status+`}`)
		if line := statusLine(object, object); reflect.ValueOf(line["status"]).String() != expected {
			t.Errorf("%s: %v", status, line)
		}
	}
	if line := statusLine(&unstructured.Unstructured{}, nil); reflect.ValueOf(line["status"]).String() != "NotFound" {
		t.Errorf("%v", line)
	}
}

func TestADigestChangesWithAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	read := func(text string) (int, [32]byte) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		objects, digest, err := readFiles([]string{file})
		if err != nil {
			t.Fatal(err)
		}
		return len(objects), digest
	}
	one, before := read("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	two, after := read("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
	if one != 1 || two != 2 || before == after {
		t.Errorf("%d %d", one, two)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	for _, arguments := range [][]string{nil, {"argo"}, {"flux", "--wait", "soon", "a.yaml"}} {
		if run(context.Background(), arguments) == nil {
			t.Errorf("%v", arguments)
		}
	}
}
