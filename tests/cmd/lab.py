"""An agent and routers as processes on loopback, for tests of the running program.

No root and no namespaces: routers are ``waggle router`` on 127.0.0.2 and up, on ports
that no other worker has. Contains no checks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.ports import free_port
from tests.support.wait import eventually

NODE = "node-1"
PYTHON = (sys.executable, "-m")


def service(name: str, address: str) -> dict[str, Any]:
    """Return a Service of type LoadBalancer with an address."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "labels": {"expose": "true"}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }


def configuration(ports: Sequence[int]) -> list[dict[str, Any]]:
    """Return a node, and a peer for each port: tor-1 at 127.0.0.2, tor-2 at 127.0.0.3 ..."""
    peers = [
        {
            "name": f"tor-{number}",
            "peerASN": 65000,
            "peerAddress": f"127.0.0.{number + 1}",
            "peerConfigRef": {"name": f"tor-{number}"},
        }
        for number, _ in enumerate(ports, 1)
    ]
    families = [
        {"afi": "ipv4", "safi": "unicast", "advertisements": {"matchLabels": {"advertise": "bgp"}}}
    ]
    v2 = {"apiVersion": "cilium.io/v2"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {"rack": "r1"}},
            "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.11"}]},
        },
        v2
        | {
            "kind": "CiliumBGPClusterConfig",
            "metadata": {"name": "rack"},
            "spec": {
                "nodeSelector": {"matchLabels": {"rack": "r1"}},
                "bgpInstances": [{"name": "main", "localASN": 65001, "peers": peers}],
            },
        },
        *(
            v2
            | {
                "kind": "CiliumBGPPeerConfig",
                "metadata": {"name": f"tor-{number}"},
                "spec": {
                    "transport": {"peerPort": port},
                    "timers": {"connectRetryTimeSeconds": 1},
                    "families": families,
                },
            }
            for number, port in enumerate(ports, 1)
        ),
        v2
        | {
            "kind": "CiliumBGPAdvertisement",
            "metadata": {"name": "services", "labels": {"advertise": "bgp"}},
            "spec": {
                "advertisements": [
                    {
                        "advertisementType": "Service",
                        "service": {"addresses": ["LoadBalancerIP"]},
                        "selector": {"matchLabels": {"expose": "true"}},
                    }
                ]
            },
        },
    ]


@contextmanager
def routers(
    directory: Path,
    count: int,
    originate: Sequence[str] = (),
    **members: Any,  # noqa: ANN401  JSON
) -> Iterator[list[int]]:
    """Run routers that originate these prefixes, with members of the neighbor; yield their ports."""
    daemons: list[Daemon] = []
    ports: list[int] = []
    try:
        for number in range(1, count + 1):
            address = f"127.0.0.{number + 1}"
            ports.append(free_port(address))
            neighbor = {"address": "127.0.0.1", "asn": 65001, "passive": True, "import": "all"}
            neighbor |= {"export": "local"} if originate else {}
            neighbor |= members
            config = {
                "asn": 65000,
                "routerID": f"192.0.2.{number}",
                "listen": [{"address": address, "port": ports[-1]}],
                "originate": list(originate),
                "neighbors": [neighbor],
            }
            path = directory / f"router-{number}.json"
            path.write_text(json.dumps(config))  # JSON is YAML
            command: list[str | Path] = [*PYTHON, "waggle", "router", "-c", path]
            log = directory / f"router-{number}.log"
            daemons.append(Daemon(f"router {number}", command, log=log))
            daemons[-1].start()
        yield ports
    finally:
        for daemon in daemons:
            daemon.stop()


def established(agent: Agent, count: int) -> None:
    """Wait until so many sessions are up."""

    def check() -> None:
        states = {name: (p["state"], p.get("reason")) for name, p in agent.peers().items()}
        up = [name for name, (state, _) in states.items() if state == "Established"]
        assert len(up) == count, states

    eventually(check, context=agent.daemon.tail)
