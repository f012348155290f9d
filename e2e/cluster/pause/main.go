// Command pause holds the namespaces of a pod. As process 1 it reaps processes that outlive their parents.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if process, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); process <= 0 || err != nil {
				break
			}
		}
	}
}
