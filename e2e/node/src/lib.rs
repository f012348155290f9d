//! A simulated kubelet: runs pods as local processes against any API server.
