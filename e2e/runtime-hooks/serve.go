package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

func serve(ctx context.Context, arguments []string) error {
	var address, certificate, key, clientCA, answers string
	flags := newFlags("serve")
	flags.StringVar(&address, "address", "127.0.0.1:0", "The address to listen on. Port 0 selects a free port.")
	flags.StringVar(&certificate, "cert-file", "", "The certificate, in PEM.")
	flags.StringVar(&key, "key-file", "", "Its private key, in PEM.")
	flags.StringVar(&clientCA, "client-ca-file", "", "The CA of client certificates, in PEM. Default: no client certificate is required.")
	flags.StringVar(&answers, "answers", "", "The folder of answers, each <Hook>.json. Default: every field is set.")
	parse(flags, arguments, "cert-file", "key-file")

	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	options := server.Options{Host: host, CertDir: "/"} // Joining a path to the root keeps it unchanged.
	for path, option := range map[*string]*string{
		&certificate: &options.CertName, &key: &options.KeyName, &clientCA: &options.ClientCAName,
	} {
		if *path != "" {
			if *option, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	if options.Catalog, err = newCatalog(); err != nil {
		return err
	}
	for {
		// The server replaces 0 by its default.
		if options.Port, err = choose(host, port); err != nil {
			return err
		}
		err = serveAt(ctx, options, answers)
		if port != "0" || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

func choose(host, port string) (int, error) {
	if port != "0" {
		return strconv.Atoi(port)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func serveAt(ctx context.Context, options server.Options, answers string) error {
	server, err := newServer(options, answers)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		isStarted := server.StartedChecker()
		for isStarted(nil) != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		printLine(map[string]string{"address": net.JoinHostPort(options.Host, strconv.Itoa(options.Port))})
	}()
	return server.Start(ctx)
}

func newServer(options server.Options, answers string) (*server.Server, error) {
	result, err := server.New(options)
	if err != nil {
		return nil, err
	}
	for index, hook := range hooks {
		handler := server.ExtensionHandler{
			Hook: hook.function,
			Name: hook.handlerName(),
			HandlerFunc: hook.newHandler(func(request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) {
				printLine(struct {
					Hook    string `json:"hook"`
					Handler string `json:"handler"`
					Request any    `json:"request"`
				}{hook.name, hook.handlerName(), request})
				if err := readOrFill(answers, hook.name, response); err != nil {
					response.SetStatus(runtimehooksv1.ResponseStatusFailure)
					response.SetMessage(err.Error())
				}
			}),
		}
		switch index % 3 {
		case 1:
			handler.TimeoutSeconds, handler.FailurePolicy = new(int32(5)), new(runtimehooksv1.FailurePolicyFail)
		case 2:
			handler.TimeoutSeconds, handler.FailurePolicy = new(int32(30)), new(runtimehooksv1.FailurePolicyIgnore)
		}
		if err := result.AddExtensionHandler(handler); err != nil {
			return nil, err
		}
	}
	return result, nil
}
