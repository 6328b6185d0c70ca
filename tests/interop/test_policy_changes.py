"""Reloads of a router between two real ones: what its policies reject is neither used nor advertised.

The upstream router restarts gracefully (RFC 4724, RFC 8538); the downstream router shows what is
advertised on.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, OURS, PORT, give_addresses
from tests.support.daemon import Daemon
from tests.support.netns import linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import Originated
from tests.support.routers.waggle import Waggle
from tests.support.wait import eventually

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
]

UPSTREAM, DOWNSTREAM = "10.99.0.11", "10.99.0.13"
KEPT, REJECTED = "198.51.100.0/24", "203.0.113.0/24"
POLICY = {
    "prefixLists": {"unwanted": [{"prefix": REJECTED}]},
    "policies": {
        "in": {
            "default": "accept",
            "terms": [{"match": {"prefixList": "unwanted"}, "action": "reject"}],
        }
    },
}


class Middle:
    """A ``waggle router`` whose file is written by the test."""

    def __init__(self, waggle: Waggle) -> None:
        self.waggle = waggle
        self.upstream: dict[str, Any] = {
            "address": UPSTREAM,
            "asn": 65101,
            "port": PORT,
            "connectRetryTime": 1,
            "holdTime": 90,
            "import": "all",
            "gracefulRestart": {"restartTime": 120},
        }
        self.downstream: dict[str, Any] = {
            "address": DOWNSTREAM,
            "asn": 65103,
            "port": PORT,
            "connectRetryTime": 1,
            "holdTime": 90,
            "export": "all",
        }
        self.more: dict[str, Any] = {}

    def write(self) -> None:
        document = {
            "asn": ASN,
            "routerID": OURS[0],
            "listen": [{"address": OURS[0], "port": PORT}],
            "apiSocket": str(self.waggle.directory / "api"),
            "neighbors": [one for one in (self.upstream, self.downstream) if one],
            **self.more,
        }
        (self.waggle.directory / "router.yaml").write_text(json.dumps(document))

    def reload(self) -> None:
        self.write()
        before = self.daemon.log.read_text().count("reloaded")
        self.daemon.signal(signal.SIGHUP)

        def done() -> None:
            assert self.daemon.log.read_text().count("reloaded") > before

        eventually(done, context=self.daemon.tail)

    @property
    def daemon(self) -> Daemon:
        return self.waggle.daemon

    def peer(self, address: str) -> dict[str, Any]:
        (found,) = [one for one in self.waggle.ask("peers") if one.get("address") == address]
        return dict(found)

    def best(self) -> set[str]:
        routes = self.waggle.ask("routes", table="available", family="ipv4-unicast")
        return {route["prefix"] for route in routes if route.get("best")}


@contextlib.contextmanager
def row(kind: str, directory: Path) -> Iterator[tuple[Middle, Router, Router]]:
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        middle = Middle(
            Waggle(RouterSettings(ASN, OURS[0], (OURS[0],), ()), link.left, directory / "waggle")
        )
        families = ("ipv4-unicast",)
        up = KINDS[kind](
            RouterSettings(
                65101,
                UPSTREAM,
                (UPSTREAM,),
                (
                    PeerSettings(
                        OURS[0], ASN, port=PORT, passive=False, restart_time=120, families=families
                    ),
                ),
                PORT,
            ),
            link.right,
            directory / "up",
        )
        down = KINDS["bird"](
            RouterSettings(
                65103,
                DOWNSTREAM,
                (DOWNSTREAM,),
                (PeerSettings(OURS[0], ASN, port=PORT, passive=False, families=families),),
                PORT,
            ),
            link.right,
            directory / "down",
        )
        up.announced = {KEPT: Originated(), REJECTED: Originated()}
        middle.write()
        middle.daemon.start()
        stack.callback(middle.daemon.stop)
        for router in (up, down):
            router.start()
            stack.callback(router.stop)
            router.wait_ready()
        yield middle, up, down


def holds(middle: Middle, down: Router, *prefixes: str) -> Callable[[], None]:
    def check() -> None:
        assert middle.best() == set(prefixes)
        assert set(down.routes("ipv4-unicast", OURS[0])) == set(prefixes)

    return check


both = pytest.mark.parametrize("kind", ["gobgp", "frr"])


@both
def test_a_policy_that_changes_with_a_hold_time_applies_to_the_kept_routes(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    need_router("bird")
    with row(kind, tmp_path) as (middle, _, down):
        eventually(holds(middle, down, KEPT, REJECTED), context=middle.daemon.tail)
        middle.more = POLICY
        middle.upstream |= {"import": "in", "holdTime": 120}
        middle.reload()
        eventually(holds(middle, down, KEPT), context=middle.daemon.tail)

        def again() -> None:
            assert middle.peer(UPSTREAM)["state"] == "Established"

        eventually(again, context=middle.daemon.tail)
        holds(middle, down, KEPT)()
        middle.upstream |= {"import": "all", "holdTime": 90}
        middle.reload()
        eventually(holds(middle, down, KEPT, REJECTED), context=middle.daemon.tail)


@both
def test_a_policy_that_changes_while_the_peer_is_away_applies_to_the_kept_routes(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    need_router("bird")
    with row(kind, tmp_path) as (middle, up, down):
        eventually(holds(middle, down, KEPT, REJECTED), context=middle.daemon.tail)
        up.kill()

        def away() -> None:
            peer = middle.peer(UPSTREAM)
            assert peer["state"] != "Established"
            assert [one["routes"] for one in peer["stale"]] == [2]

        eventually(away, context=middle.daemon.tail)
        holds(middle, down, KEPT, REJECTED)()
        middle.more = POLICY
        middle.upstream |= {"import": "in"}
        middle.reload()
        eventually(holds(middle, down, KEPT), context=middle.daemon.tail)
        up.resume()
        up.wait_ready()

        def back() -> None:
            assert middle.peer(UPSTREAM)["state"] == "Established"
            assert [one["routes"] for one in middle.peer(UPSTREAM)["received"]] == [2]

        eventually(back, context=middle.daemon.tail)
        holds(middle, down, KEPT)()


@both
def test_a_peer_of_a_range_gets_an_entry_of_its_own_and_goes_back(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    need_router("bird")
    with row(kind, tmp_path) as (middle, _up, down):
        entry = dict(middle.downstream)
        of_range = {"prefix": "10.99.0.13/32", "asn": 65103, "holdTime": 90, "export": "none"}
        eventually(holds(middle, down, KEPT, REJECTED), context=middle.daemon.tail)

        def is_dynamic(dynamic: bool, *prefixes: str) -> Callable[[], None]:
            def check() -> None:
                peer = middle.peer(DOWNSTREAM)
                assert (peer["state"], peer.get("dynamic", False)) == ("Established", dynamic)
                assert set(down.routes("ipv4-unicast", OURS[0])) == set(prefixes)

            return check

        middle.downstream = of_range
        middle.reload()
        eventually(is_dynamic(True), context=middle.daemon.tail)
        own = {**entry, "name": "own", "export": "none"}
        middle.more = {"neighbors": [middle.upstream, of_range, own]}
        middle.reload()
        eventually(is_dynamic(False), context=middle.daemon.tail)
        # The range no longer decides about it.
        middle.more = {"neighbors": [middle.upstream, {**of_range, "export": "all"}, own]}
        middle.reload()
        is_dynamic(False)()
        down.stop()

        def is_listed() -> None:
            assert middle.peer(DOWNSTREAM)["state"] != "Established"

        eventually(is_listed, context=middle.daemon.tail)
        down.start()
        eventually(is_dynamic(False), context=middle.daemon.tail)
        middle.more = {"neighbors": [middle.upstream, {**of_range, "export": "all"}]}
        middle.reload()
        eventually(is_dynamic(True, KEPT, REJECTED), context=middle.daemon.tail)
