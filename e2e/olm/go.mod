module windlass.dev/e2e/olm

go 1.26.0

// OLM itself is no module that a proxy serves.
require github.com/operator-framework/api v0.9.1
