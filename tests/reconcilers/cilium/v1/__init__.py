"""The tests of Cilium's first BGP API."""
