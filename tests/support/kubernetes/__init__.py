"""A real API server for tests: etcd and kube-apiserver, with the versions that go.mod pins."""
