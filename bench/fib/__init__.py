"""Routers, feeders and a listener of `bench.bench_fib`: routes from a session into the kernel."""
