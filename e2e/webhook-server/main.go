// The webhooks of the sample operator, implemented with controller-runtime as scaffolded by kubebuilder: it starts, reloads its
// certificate and shuts down like other operators with this scaffold.
//
// Differences from the scaffold: pods of the tests share one machine, so every port is opened at the pod's own address (POD_IP); and
// flags select the behaviour of a release.
package main

import (
	"crypto/tls"
	"flag"
	"net"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

var setupLog = ctrl.Log.WithName("setup")

func main() {
	var certPath, versions string
	var at paths
	var port, healthPort int
	var enableHTTP2 bool
	flag.StringVar(&certPath, "webhook-cert-path", "",
		"The folder of tls.crt and tls.key. Default: k8s-webhook-server/serving-certs below the folder for temporary files.")
	flag.StringVar(&versions, "versions", "v1beta1,v1,v2", "The versions of Widget that this release supports; v1 must be one of them.")
	flag.StringVar(&at.mutate, "mutate-path", "", "The path of the mutating webhook. Default: /mutate-sample-windlass-dev-v1-widget.")
	flag.StringVar(&at.validate, "validate-path", "", "The path of the validating webhook. Default: /validate-sample-windlass-dev-v1-widget.")
	flag.IntVar(&port, "webhook-port", 9443, "The port of the webhooks.")
	flag.IntVar(&healthPort, "health-probe-port", 8081, "The port of /healthz and /readyz.")
	flag.BoolVar(&enableHTTP2, "enable-http2", false, "If set, HTTP/2 will be enabled for the webhook server.")
	options := zap.Options{Development: true}
	options.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&options)))

	scheme := runtime.NewScheme()
	fail(addToScheme(scheme, strings.Split(versions, ",")), "unable to register the kind")
	var tlsOptions []func(*tls.Config)
	if !enableHTTP2 {
		tlsOptions = append(tlsOptions, func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	}
	address := os.Getenv("POD_IP")
	server := webhook.NewServer(webhook.Options{Host: address, Port: port, CertDir: certPath, TLSOpts: tlsOptions})
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		WebhookServer:          server,
		HealthProbeBindAddress: net.JoinHostPort(address, strconv.Itoa(healthPort)),
	})
	fail(err, "unable to start manager")
	fail(setupWidgetWebhook(manager, at), "unable to create webhook")
	fail(manager.AddHealthzCheck("healthz", healthz.Ping), "unable to set up health check")
	fail(manager.AddReadyzCheck("readyz", healthz.Ping), "unable to set up ready check")

	setupLog.Info("starting manager")
	fail(manager.Start(ctrl.SetupSignalHandler()), "problem running manager")
}

func fail(err error, what string) {
	if err != nil {
		setupLog.Error(err, what)
		os.Exit(1)
	}
}
