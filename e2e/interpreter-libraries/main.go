// Command interpreter-libraries is what Karmada's interpreter is built from, for ours to be held against: gopher-lua, which runs its
// scripts; gopher-json, which takes objects in and out of them; Quantity of apimachinery, which its library for scripts adds up; and
// json-patch, which applies what webhooks answer. Karmada's own module is one that no proxy serves.
//
// It answers questions from stdin on stdout, both JSON, one a line, until stdin ends. An answer is {"answer":…}, {"error":"…"}
// where the library refuses, or {"error":"…","panics":true} where it has a defect.
//
//	{"script":{"text":"…","function":"…","arguments":[…],"results":N}}
//
// What a function of a script returns: its first N values, {"type":"…","value":…} each, of which the value is what gopher-json makes of it.
// Arguments are objects as gopher-json takes them in; null is nil. Each script has a state of its own, with the libraries that Karmada opens
// and without the functions that it takes away: who calls one of those gets an error, as there.
//
//	{"sum":["…",…]}
//
// The sum of quantities from nothing, as kube.resourceAdd has it: {"text":"…","number":N}, of which the number is what
// kube.getResourceQuantity makes of it.
//
//	{"patch":{"document":…,"operations":[…]}}
//
// The document as the operations leave it.
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
	return nil, errors.New("it asks nothing")
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
