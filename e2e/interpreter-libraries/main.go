// Command interpreter-libraries runs the libraries of Karmada's interpreter, to compare ours with them: gopher-lua, which runs scripts;
// gopher-json, which converts objects; Quantity of apimachinery, which the library for scripts uses; and json-patch, which applies patches
// of webhooks. No proxy serves Karmada's own module.
//
// It reads requests from stdin and writes responses to stdout, both JSON, one per line, until stdin ends. A response is {"answer":…},
// {"error":"…"} if the library returns an error, or {"error":"…","panics":true} if it panics.
//
//	{"script":{"text":"…","function":"…","arguments":[…],"results":N}}
//
// Calls a function of a script; the answer is its first N values, {"type":"…","value":…} each, with the value as converted by gopher-json.
// Arguments are objects as converted by gopher-json; null is nil. Each script has its own state with the libraries that Karmada opens, and
// without the functions that it removes: calling one of those is an error, as in Karmada.
//
//	{"sum":["…",…]}
//
// Adds quantities like kube.resourceAdd; the answer is {"text":"…","number":N}, with the number of kube.getResourceQuantity.
//
//	{"patch":{"document":…,"operations":[…]}}
//
// Applies the operations; the answer is the changed document.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	jsonpatch "github.com/evanphx/json-patch/v5"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/resource"
)

type question struct {
	Script *script  `json:"script"`
	Sum    []string `json:"sum"`
	Patch  *patch   `json:"patch"`
}

type patch struct {
	Document   json.RawMessage `json:"document"`
	Operations json.RawMessage `json:"operations"`
}

type sum struct {
	Text   string  `json:"text"`
	Number float64 `json:"number"`
}

func main() {
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "interpreter-libraries: %v\n", err)
		os.Exit(1)
	}
}

func answerAll(input io.Reader, output io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReader(input))
	buffered := bufio.NewWriter(output)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for {
		var asked question
		if err := decoder.Decode(&asked); errors.Is(err, io.EOF) {
			return buffered.Flush()
		} else if err != nil {
			return err
		}
		if err := encoder.Encode(answer(asked)); err != nil {
			return err
		}
	}
}

func answer(asked question) (answered map[string]any) {
	defer func() {
		if problem := recover(); problem != nil {
			answered = map[string]any{"error": fmt.Sprint(problem), "panics": true}
		}
	}()
	answer, err := asked.answer()
	if err != nil {
		var failed *lua.ApiError
		return map[string]any{"error": err.Error(), "panics": errors.As(err, &failed) && failed.Type == lua.ApiErrorPanic}
	}
	return map[string]any{"answer": answer}
}

func (asked question) answer() (any, error) {
	switch {
	case asked.Script != nil:
		return asked.Script.run()
	case asked.Sum != nil:
		return add(asked.Sum)
	case asked.Patch != nil:
		return asked.Patch.apply()
	}
	return nil, errors.New("the request has no operation")
}

func add(texts []string) (*sum, error) {
	var total resource.Quantity
	for _, text := range texts {
		amount, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, err
		}
		total.Add(amount)
	}
	return &sum{Text: total.String(), Number: total.AsApproximateFloat64()}, nil
}

func (asked *patch) apply() (json.RawMessage, error) {
	operations, err := jsonpatch.DecodePatch(asked.Operations)
	if err != nil {
		return nil, err
	}
	return operations.Apply(asked.Document)
}
