// Command kubernetes contains the programs of a cluster in one executable. The name by which it is called, or else its
// first argument, selects the program.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	program := filepath.Base(os.Args[0])
	if program == "kubernetes" && len(os.Args) > 1 {
		program, os.Args = os.Args[1], os.Args[1:]
	}
	switch program {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "kubelet":
		os.Exit(cli.Run(newKubeletCommand(kubelet.NewKubeletCommand)))
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: kubernetes etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|"+
			"kubelet|kubectl [FLAGS]")
		os.Exit(2)
	}
}

// newKubeletCommand calls a constructor whose parameters depend on the version of Kubernetes.
func newKubeletCommand(constructor any) *cobra.Command {
	switch constructor := constructor.(type) {
	case func() *cobra.Command:
		return constructor()
	case func(context.Context) *cobra.Command:
		return constructor(context.Background())
	default:
		panic(fmt.Sprintf("kubelet.NewKubeletCommand is a %T", constructor))
	}
}
