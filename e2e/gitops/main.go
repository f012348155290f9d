// Applies objects as GitOps engines do, and reports what they revert.
//
//	gitops argo [--server-side] [--prune] [--out-of-sync-only] [--kubeconfig FILE] [--interval 10s] FILE…
//	gitops flux [--wait 1m] [--kubeconfig FILE] [--interval 10s] FILE…
//	gitops status [--watch] [--namespace NAMESPACE] [--kubeconfig FILE] FILE|KIND/NAME…
//
// Flags come before arguments. The output is one JSON object per line. argo and flux run until SIGTERM or SIGINT; their
// last line counts the writes. They exit with code 1 if a pass had errors.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("requires a command: argo, flux or status")
	}
	command := arguments[0]
	flags := flag.NewFlagSet("gitops "+command, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "Kubeconfig of the cluster.")
	interval := flags.Duration("interval", 10*time.Second, "Interval between passes.")
	serverSide := flags.Bool("server-side", false, "argo: use server-side apply and server-side diff.")
	prune := flags.Bool("prune", false, "argo: delete objects that were removed from the files.")
	onlyDrifted := flags.Bool("out-of-sync-only", false,
		"argo: after the first pass, sync only objects that are out of sync, as self-heal does.")
	timeout := flags.Duration("wait", 0, "flux: wait this long for the objects in each pass, as spec.wait does.")
	watch := flags.Bool("watch", false, "status: print every change until SIGTERM.")
	namespace := flags.String("namespace", "default", "status: namespace of KIND/NAME.")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("%s requires a file", command)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	// The part of the user agent before the slash is the field manager of some writes.
	config.UserAgent = map[string]string{"argo": argoApplicationManager, "flux": fluxManager}[command]
	objects, err := newCluster(config)
	if err != nil {
		return err
	}
	switch command {
	case "argo":
		cleanup, err := useCacheFolder()
		if err != nil {
			return err
		}
		defer cleanup()
		chosen, err := newArgo(config)
		if err != nil {
			return err
		}
		chosen.serverSide, chosen.prune, chosen.onlyDrifted = *serverSide, *prune, *onlyDrifted
		return reconcile(ctx, objects, chosen, *interval, flags.Args())
	case "flux":
		return reconcile(ctx, objects, newFlux(objects, *timeout), *interval, flags.Args())
	case "status":
		return printStatus(ctx, objects, *watch, *namespace, flags.Args())
	}
	return fmt.Errorf("unknown command %q", command)
}
