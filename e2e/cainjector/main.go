// cert-manager's cainjector: the controllers and settings of the binary of that name, with feature gates at their
// defaults. The module proxy does not serve the binary's module.
//
// Differences: it serves no metrics, because several instances share one machine. Certificates are a source only if a flag
// enables them, because they need cert-manager's CRD.
package main

import (
	"flag"
	"os"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/util"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var setupLog = ctrl.Log.WithName("setup")

func main() {
	var leaderElect, certificates bool
	var lease, renew, retry time.Duration
	flag.BoolVar(&leaderElect, "leader-elect", true, "Run only while holding the leader election Lease.")
	flag.DurationVar(&lease, "leader-election-lease-duration", 60*time.Second, "How long other candidates wait for a leader that does not renew its Lease.")
	flag.DurationVar(&renew, "leader-election-renew-deadline", 40*time.Second, "How long a leader tries to renew before it gives up.")
	flag.DurationVar(&retry, "leader-election-retry-period", 15*time.Second, "The interval between attempts.")
	flag.BoolVar(&certificates, "enable-certificates-data-source", false,
		"Also use Certificates as sources.")
	options := zap.Options{Development: true}
	options.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&options)))

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kscheme.AddToScheme, cmapi.AddToScheme, apiext.AddToScheme, apireg.AddToScheme,
	} {
		fail(add(scheme), "unable to register kinds")
	}
	// The part of the user agent before the slash is the field manager.
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(ctrl.GetConfigOrDie(), "cainjector"), ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{ReaderFailOnMissingInformer: true},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},

		LeaderElection:                leaderElect,
		LeaderElectionNamespace:       "kube-system",
		LeaderElectionID:              "cert-manager-cainjector-leader-election",
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionLabels:          map[string]string{"app.kubernetes.io/managed-by": "cert-manager-cainjector"},
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,

		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	fail(err, "error creating manager")
	ctx := ctrl.SetupSignalHandler()
	fail(cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: certificates,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	}), "failed to register controllers")

	setupLog.Info("starting manager")
	fail(manager.Start(ctx), "error running manager")
}

func fail(err error, what string) {
	if err != nil {
		setupLog.Error(err, what)
		os.Exit(1)
	}
}
