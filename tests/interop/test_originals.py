"""FRR, configured by hand as FRR-k8s configures it, and the agent with the FRRConfigurations.

Each has a network of its own with the same BIRDs: one for each of ten cases. Prefixes and attributes
that the BIRDs hold are the same, and so is what is accepted of the prefixes that each BIRD advertises.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.interop.conftest import NeedRouter
from tests.support import plain_yaml
from tests.support.agent import Agent
from tests.support.expected_routes import TableRoute, actual_table, table_differences
from tests.support.netns import Link, linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import Originated
from tests.support.routers.frr import Frr
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

HERE = Path(__file__).with_name("originals")
ASN, PORT = 64900, 1790
OURS = ("10.98.0.1", "fd00:98::1")
CASES: Mapping[str, int] = {
    "10.98.0.11": 64951,
    "10.98.0.12": 64952,
    "10.98.0.13": ASN,
    "10.98.0.14": 64954,
    "fd00:98::15": 64955,
    "10.98.0.16": 64956,
    "10.98.0.17": 64957,
    "10.98.0.18": 64958,
    "10.98.0.19": 64959,
    "10.98.0.20": ASN,
}
"""AS numbers of the BIRDs by address; each address is a case of ``frrconfigurations.yaml``."""
ADVERTISED = {
    4: ("198.51.100.0/24", "198.51.100.0/25", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24",
        "10.1.2.0/25", "10.96.0.0/12", "10.100.7.0/24", "172.16.0.0/12", "172.17.1.0/24",
        "172.17.1.1/32", "192.168.0.0/16", "192.168.16.0/20", "192.168.8.0/21", "11.0.0.0/8"),
    6: ("2001:db8:f000::/36", "2001:db8:f000::/48", "2001:db8:f000::/49", "2001:db8:e000::/36"),
}  # fmt: skip
"""By family: what each BIRD advertises, for the filters to accept and refuse."""


class HandWritten(Frr):
    """FRR with the configuration in ``originals/frr.conf``, and with zebra, as FRR-k8s runs it."""

    def _has_interfaces(self) -> bool:
        return True

    def configuration(self) -> Mapping[str, str]:
        each = "\n".join(
            f" neighbor {address} {words}"
            for address in CASES
            for words in (
                f"port {PORT}",
                "timers connect 1",
                "advertisement-interval 0",
                f"update-source {_own(address)}",
            )
        )
        text = (HERE / "frr.conf").read_text()
        return {"bgpd.conf": text.replace(" @each@", each)}


def _own(address: str) -> str:
    return OURS[ipaddress.ip_address(address).version == 6]


def birds(link: Link, directory: Path) -> dict[str, Router]:
    """Return the BIRDs of one network, by address; not started."""
    found: dict[str, Router] = {}
    for i, (address, asn) in enumerate(CASES.items()):
        theirs = 64800 if address.endswith(".18") else ASN
        peer = PeerSettings(_own(address), theirs, port=PORT, local_address=address)
        settings = RouterSettings(asn, f"10.98.1.{i + 1}", (address,), (peer,), PORT)
        found[address] = KINDS["bird"](settings, link.right, directory / f"bird-{i}")
        found[address].announced.update(
            dict.fromkeys(ADVERTISED[ipaddress.ip_address(address).version], Originated())
        )
    return found


def give_addresses(link: Link) -> None:
    for side, addresses in ((link.left, OURS), (link.right, tuple(CASES))):
        for address in addresses:
            side.add_address(f"{address}/{64 if ':' in address else 24}")


@contextlib.contextmanager
def running(*parts: Agent | Router) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for part in parts:
            part.start()
            stack.callback(part.stop)
        for part in parts:
            part.wait_ready()
        yield


def tables(routers: Mapping[str, Router]) -> dict[str, dict[str, TableRoute]]:
    """Return what the BIRDs hold, once each has its session."""
    for address, router in routers.items():
        (session,) = router.peers().values()
        assert session.established, (address, session)
    return {
        address: actual_table(router.all_routes(), internal=CASES[address] == ASN)
        for address, router in routers.items()
    }


def accepted_by_frr(frr: Frr, address: str) -> set[str]:
    families = ("ipv6-unicast",) if ":" in address else ("ipv4-unicast",)
    return {route.prefix for family in families for route in frr.paths(family, address)}


def accepted_by_the_agent(agent: Agent, address: str) -> set[str]:
    return {item["prefix"] for item in agent.routes("received", address) if item["accepted"]}


def test_ten_cases(need_router: NeedRouter, tmp_path: Path) -> None:
    need_router("frr")
    need_router("bird")
    with linked_namespaces() as original, linked_namespaces() as own:
        for link in (original, own):
            give_addresses(link)
        at_frr = birds(original, tmp_path / "original")
        at_agent = birds(own, tmp_path / "own")
        listed = tuple(PeerSettings(address, asn) for address, asn in CASES.items())
        frr = HandWritten(
            RouterSettings(ASN, OURS[0], OURS, listed, PORT), original.left, tmp_path / "frr"
        )
        arguments = ("--disable-cell", "cilium", "--enable-cell", "frrk8s", "--always-block")
        agent = Agent(own.left, tmp_path / "agent", arguments=(*arguments, "10.96.0.0/12"))
        text = (HERE / "frrconfigurations.yaml").read_text()
        agent.write("objects.yaml", _with_ports(text))
        with running(*at_frr.values(), *at_agent.values(), frr, agent):

            def check() -> None:
                wanted, found = tables(at_frr), tables(at_agent)
                for address in CASES:
                    differences = table_differences(found[address], wanted[address])
                    assert not differences, f"{address}: {differences}"
                    theirs, ours = (
                        accepted_by_frr(frr, address),
                        accepted_by_the_agent(agent, address),
                    )
                    assert ours == theirs, f"{address} accepts"
                assert len(wanted["10.98.0.11"]) == 3
                assert accepted_by_frr(frr, "10.98.0.17") == {
                    "172.17.1.0/24", "172.17.1.1/32", "192.168.0.0/16", "192.168.16.0/20",
                }  # fmt: skip

            eventually(check, context=lambda: f"{frr.daemon.tail()}\n{agent.daemon.tail()}")


def _with_ports(text: str) -> str:
    """Return the objects with the port, the source address and the pause of this test."""
    objects = list(plain_yaml.load_all(text))
    for one in objects:
        for router in one["spec"]["bgp"]["routers"] if "spec" in one else ():
            for neighbor in router["neighbors"]:
                neighbor["port"] = PORT
                neighbor["sourceaddress"] = _own(neighbor["address"])
                neighbor["connectTime"] = "1s"
    return yaml.safe_dump_all(objects)
