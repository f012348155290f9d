module windlass.dev/e2e/olm

go 1.26.0

// The module proxy does not serve OLM itself.
require github.com/operator-framework/api v0.9.1
