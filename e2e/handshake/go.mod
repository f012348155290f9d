module windlass.dev/e2e/handshake

go 1.26.0
