// Command runtime-hooks is Cluster API's own code for runtime hooks, for ours to be held against: its server, its client with
// its registry, and what it makes of the ExtensionConfigs that another writer discovered. Its module lies below Cluster API's,
// since the client and the registry are internal there and Go asks by path who may import them.
//
// What it says is JSON on stdout, one value a line; its log is on stderr. It exits with 0 when it could ask its question,
// whatever the answer, with 1 when it could not, and with 2 when the arguments are wrong.
//
//	runtime-hooks serve --cert-file FILE --key-file FILE [--address 127.0.0.1:0] [--answers DIR] [--client-ca-file FILE]
//
// A server with one handler for each hook but Discovery, until SIGTERM or SIGINT. A handler has the name of its hook in kebab
// case: before-cluster-create answers BeforeClusterCreate. In the order of hooks.go their timeouts and failure policies are, by
// turns: none (which readers take for 10 seconds and Fail), 5 seconds and Fail, 30 seconds and Ignore. An answer is
// DIR/<Hook>.json, read at each request, which needs "status" as any answer does; a file that does not decode is a Failure; and
// where there is none the answer is a Success with every field set (fill.go). Certificate and key are read again when their
// files change. With --client-ca-file only who has a certificate by that CA is heard.
//
//	{"address":"127.0.0.1:PORT"}                          once it listens
//	{"hook":"…","handler":"…","request":{…}}              for each request, as Go decoded it; none for Discovery
//
//	runtime-hooks call --extension-config FILE… [--requests DIR] [--namespace-labels k=v,…] [--services-at HOST:PORT]
//	                   [--client-cert-file FILE --client-key-file FILE]
//
// Discovers and registers each ExtensionConfig, in the order given, and then calls for each hook every handler that is
// registered, by name and in the order of names (CallExtension), and for those that Cluster API calls so all at once
// (CallAllExtensions). The ExtensionConfigs are taken as they are: no webhook gives defaults, so one without namespaceSelector
// matches nothing. What is called for is the Cluster default/cluster, in a Namespace with the labels given. A request is
// DIR/<Hook>.json; where there is no such file every field is set (fill.go). Services are no names that anybody here resolves:
// with --services-at whatever is not on this machine is at that address, by the server name that it has in the cluster.
//
//	{"extensionConfig":"…","handlers":[…],"error":"…"}    for each ExtensionConfig: status.handlers
//	{"hook":"…","handler":"….…","error":"…","request":{…},"response":{…}}
//
// "handler" is not there when all were called, and "error" not when there was none. "request" is what the client was given,
// without settings of the ExtensionConfig, and "response" what it left, after an error too.
//
//	runtime-hooks discovered --extension-config FILE
//
// Whether the reader (the reconciler of ExtensionConfigs with ReadOnly, as the control plane provider for kubeadm runs it) takes
// the ExtensionConfig for discovered, and what is registered then: nothing, and that is no error, where it is paused or being
// deleted. v1alpha1 is converted as the webhook does it.
//
//	{"registered":[{"name","extensionConfig","apiVersion","hook","namespaceSelector","timeoutSeconds","failurePolicy","settings",
//	  "clientConfig"}],"error":"…"}
//
//	runtime-hooks catalog
//
// All hooks by name, with Discovery, and for each a request and a response with every field set. The OpenAPI document is nothing
// that a release can print: its definitions are in hack/tools, which is a module that no proxy serves.
//
//	{"apiVersion","hook","path","requestKind","responseKind","summary","description","tags","deprecated","singleton","request",
//	  "response"}
//
// A file of an ExtensionConfig is YAML or JSON, v1beta2 or v1alpha1, read as strictly as kube-apiserver can: a field that is
// unknown or there twice is an error.
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

// parse reads the flags of a command, of which some must be there.
func parse(flags *flag.FlagSet, arguments []string, required ...string) {
	_ = flags.Parse(arguments) // Exits by itself.
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

// printLine writes a value to stdout. Handlers do so at once.
func printLine(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		// Nobody is there any more who would read an answer.
		os.Exit(1)
	}
}

// readOrFill decodes directory/<hook>.json into an object, or else sets all its fields.
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

// message is what an error says; nothing when there is none.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
