"""Another program that installs routes, as many as a table has: the load of `bench.bench_fib` alone.

Once its input ends it writes consecutive /24 into the main table, hundreds of requests to a datagram.

``python -m bench.route_load FIRST COUNT GATEWAY``
"""

from __future__ import annotations

import ipaddress
import socket
import sys

from bench.least_router import CREATE_REPLACE, DATAGRAM, NEW_ROUTE, netlink, request


def main() -> None:
    """Wait for the end of the input, and write."""
    first, count, gateway = int(ipaddress.IPv4Address(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
    hop = socket.inet_aton(gateway)
    requests = [
        request(NEW_ROUTE, CREATE_REPLACE, 24, (first + (n << 8)).to_bytes(4, "big"), hop)
        for n in range(count)
    ]
    kernel = netlink()
    sys.stdin.read()
    for at in range(0, count, DATAGRAM):
        kernel.send(b"".join(requests[at : at + DATAGRAM]))


if __name__ == "__main__":
    main()
