// Command handshake calls a webhook server over TLS like kube-apiserver: the server name is that of the Service, only the
// caBundle is trusted, and Go's crypto/x509 verifies the certificate. It prints "verified", or "refused: " and Go's reason.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	address := flag.String("address", "", "where the server listens, as `host:port`")
	name := flag.String("name", "", "the server's name, as <service>.<namespace>.svc")
	bundle := flag.String("ca", "", "a `file` with the caBundle, in PEM")
	flag.Parse()

	roots := x509.NewCertPool()
	pem, err := os.ReadFile(*bundle)
	if err != nil {
		fail(err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		fail(fmt.Errorf("%s holds no certificate", *bundle))
	}
	client := http.Client{
		Timeout: 10 * time.Second,
		// The configuration that k8s.io/client-go/transport builds for k8s.io/apiserver/pkg/util/webhook.
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, *address)
			},
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: *name},
			ForceAttemptHTTP2: true,
		},
	}
	response, err := client.Post("https://"+*name+":443/", "application/json", strings.NewReader("{}"))
	var refused *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		fmt.Println("refused:", refused.Err)
	case err != nil:
		fail(err)
	default:
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		fmt.Println("verified")
	}
}

// fail exits when the test could not determine whether the server is trusted.
func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
