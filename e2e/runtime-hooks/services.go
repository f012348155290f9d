package main

import (
	"io"
	"net"
	"net/http"
	"os"
)

// sendTo redirects every connection to other machines to address. The client has no option for name resolution, but uses the proxy of
// the environment: this proxy ignores the requested host.
func sendTo(address string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if request.Method != http.MethodConnect {
				writer.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				http.Error(writer, err.Error(), http.StatusBadGateway)
				return
			}
			defer server.Close()
			client, buffered, err := http.NewResponseController(writer).Hijack()
			if err != nil {
				return
			}
			defer client.Close()
			if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(server, buffered)
				_ = server.Close()
			}()
			_, _ = io.Copy(client, server)
		}))
	}()
	// The client reads the environment at the first call.
	for name, value := range map[string]string{"HTTPS_PROXY": "http://" + listener.Addr().String(), "NO_PROXY": "", "no_proxy": ""} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}
