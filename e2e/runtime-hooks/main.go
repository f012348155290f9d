// Command runtime-hooks runs Cluster API's own code for runtime hooks, to compare ours with it: its server, its client with its
// registry, and how it reads ExtensionConfigs that another controller discovered. Its module path is below that of Cluster API,
// because the client and the registry are internal packages.
//
// It writes JSON to stdout, one value per line, and its log to stderr. It exits with 0 if the calls were made, whatever their
// results, with 1 if not, and with 2 if the arguments are invalid.
//
//	runtime-hooks serve --cert-file FILE --key-file FILE [--address 127.0.0.1:0] [--answers DIR] [--client-ca-file FILE]
//
// Runs a server with one handler for each hook except Discovery, until SIGTERM or SIGINT. A handler has the name of its hook in
// kebab case: before-cluster-create answers BeforeClusterCreate. In the order of hooks.go, their timeouts and failure policies
// alternate: none (the defaults are 10 seconds and Fail), 5 seconds and Fail, 30 seconds and Ignore. A response is
// DIR/<Hook>.json, read for each request, which needs "status" like any response; an invalid file is a Failure; and without the
// file, the response is a Success with every field set (fill.go). Certificate and key are reloaded when their files change. With
// --client-ca-file, clients need a certificate of that CA.
//
//	{"address":"127.0.0.1:PORT"}                          once it listens
//	{"hook":"…","handler":"…","request":{…}}              for each request as decoded by Go, except Discovery
//
//	runtime-hooks call --extension-config FILE… [--requests DIR] [--namespace-labels k=v,…] [--services-at HOST:PORT]
//	                   [--client-cert-file FILE --client-key-file FILE]
//
// Discovers and registers each ExtensionConfig, in the given order. Then calls, for each hook, every registered handler in the
// order of names (CallExtension), and all together where Cluster API does so (CallAllExtensions). No webhook sets defaults of the
// ExtensionConfigs, so one without namespaceSelector matches nothing. The object of the calls is the Cluster default/cluster, in a
// Namespace with the given labels. A request is DIR/<Hook>.json; without the file, every field is set (fill.go). Names of Services
// cannot be resolved here: with --services-at, all connections to other machines go to that address, with the server name of the
// cluster.
//
//	{"extensionConfig":"…","handlers":[…],"error":"…"}    for each ExtensionConfig: status.handlers
//	{"hook":"…","handler":"….…","error":"…","request":{…},"response":{…}}
//
// "handler" is absent if all handlers were called, and "error" if there was none. "request" is the client's input, without settings
// of the ExtensionConfig, and "response" its output, also after an error.
//
//	runtime-hooks discovered --extension-config FILE
//
// Shows whether the reader (the reconciler of ExtensionConfigs with ReadOnly, as in the control plane provider for kubeadm) accepts
// the ExtensionConfig as discovered, and which handlers it registers: none, without an error, if it is paused or being deleted.
// v1alpha1 is converted as by the webhook.
//
//	{"registered":[{"name","extensionConfig","apiVersion","hook","namespaceSelector","timeoutSeconds","failurePolicy","settings",
//	  "clientConfig"}],"error":"…"}
//
//	runtime-hooks catalog
//
// Lists all hooks by name, including Discovery, each with a request and a response with every field set. The OpenAPI document cannot
// be generated from a release: its definitions are in hack/tools, a module that no proxy serves.
//
//	{"apiVersion","hook","path","requestKind","responseKind","summary","description","tags","deprecated","singleton","request",
//	  "response"}
//
// A file of an ExtensionConfig is YAML or JSON, v1beta2 or v1alpha1, decoded strictly like in kube-apiserver: unknown and duplicate
// fields are errors.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

var commands = map[string]func(ctx context.Context, arguments []string) error{
	"serve":      serve,
	"call":       call,
	"discovered": discovered,
	"catalog":    printCatalog,
}

func main() {
	ctrl.SetLogger(zap.New())
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: runtime-hooks serve|call|discovered|catalog [FLAGS]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](ctrl.SetupSignalHandler(), os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "runtime-hooks %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func newFlags(command string) *flag.FlagSet {
	return flag.NewFlagSet("runtime-hooks "+command, flag.ExitOnError)
}

// parse parses the flags of a command, and checks the required ones.
func parse(flags *flag.FlagSet, arguments []string, required ...string) {
	_ = flags.Parse(arguments) // Exits on an error.
	given := map[string]bool{}
	flags.Visit(func(flag *flag.Flag) { given[flag.Name] = true })
	problem := ""
	for _, name := range required {
		if !given[name] {
			problem = "--" + name + " is required"
		}
	}
	if flags.NArg() > 0 {
		problem = "unknown argument " + flags.Arg(0)
	}
	if problem != "" {
		fmt.Fprintln(flags.Output(), problem)
		flags.Usage()
		os.Exit(2)
	}
}

var output sync.Mutex

// printLine writes a value to stdout. Handlers call it concurrently.
func printLine(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		// The reader of the output has exited.
		os.Exit(1)
	}
}

// readOrFill decodes directory/<hook>.json into an object, or sets all its fields if there is no file.
func readOrFill(directory, hook string, object any) error {
	if directory == "" {
		fill(object)
		return nil
	}
	content, err := os.ReadFile(filepath.Join(directory, hook+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		fill(object)
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(content, object)
}

// message returns the text of an error, or nil.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
