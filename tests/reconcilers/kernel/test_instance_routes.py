"""The routes of an instance that shall be in the kernel."""

from __future__ import annotations

from reconcilers.kernel.forwarding import ForwardingRules
from reconcilers.kernel.instance_routes import InstanceRoutes
from reconcilers.kernel.own_prefixes import OwnPrefixes
from reconcilers.kernel.reasons import Reason
from reconcilers.kernel.routing import HostRouting
from resources.host import Host
from speaker.api import NO_PATHS, BestPath, BestPathChange, PathSet
from speaker.nlri import IPV4_UNICAST, Family, prefix_to_wire
from tests.reconcilers.kernel.build import HOST, paths
from tests.reconcilers.kernel.build import path as of_peer

ONE, TWO = paths(of_peer("10.88.0.1")), paths(of_peer("10.88.0.2"))


def wire(text: str) -> bytes:
    return prefix_to_wire(text)[1]


def names_none(_path: BestPath, _family: Family) -> bool:
    return False


def names_all(_path: BestPath, _family: Family) -> bool:
    return True


class Table:
    """An instance's routes."""

    def __init__(self, host: Host = HOST, *, names_default: bool = False) -> None:
        routing = HostRouting(host)
        rules = ForwardingRules(routing, {"main": ""}, maximum=64, blackhole=False)
        names = names_all if names_default else names_none
        self.rules = rules
        self.routes = InstanceRoutes("", routing, rules, names, OwnPrefixes())

    def change(self, after: PathSet, *prefixes: str) -> Table:
        wires = tuple(map(wire, prefixes))
        self.routes.apply(BestPathChange(IPV4_UNICAST, NO_PATHS, after, wires))
        return self

    def gateways(self, *prefixes: str) -> list[str | None]:
        wires = list(map(wire, prefixes))
        found = self.routes.next_hops(IPV4_UNICAST, wires)
        return [str(found[nlri][0].gateway[-1]) if nlri in found else None for nlri in wires]

    def reason(self, prefix: str) -> Reason | None:
        route = self.routes.route(IPV4_UNICAST, wire(prefix))
        assert route is not None
        return None if route.forwarding.why_not is None else route.forwarding.why_not.reason


def test_prefixes_follow_their_best_paths() -> None:
    table = Table().change(ONE, "192.0.2.0/24", "203.0.113.0/24")
    assert table.gateways("192.0.2.0/24", "203.0.113.0/24", "10.0.0.0/8") == ["1", "1", None]
    table.change(TWO, "192.0.2.0/24")
    assert table.gateways("192.0.2.0/24", "203.0.113.0/24") == ["2", "1"]
    table.change(NO_PATHS, "192.0.2.0/24", "198.51.100.0/24")
    assert table.gateways("192.0.2.0/24", "203.0.113.0/24") == [None, "1"]
    assert table.routes.prefixes(IPV4_UNICAST) == (wire("203.0.113.0/24"),)


def test_a_martian_is_not_installed_from_any_peer() -> None:
    table = Table().change(ONE, "127.0.0.0/8", "192.0.2.0/24")
    assert table.gateways("127.0.0.0/8", "192.0.2.0/24") == [None, "1"]
    assert table.reason("127.0.0.0/8") == Reason.MARTIAN


def test_a_default_route_is_installed_where_a_rule_names_it() -> None:
    assert Table().change(ONE, "0.0.0.0/0").reason("0.0.0.0/0") == Reason.DEFAULT_ROUTE
    assert Table(names_default=True).change(ONE, "0.0.0.0/0").gateways("0.0.0.0/0") == ["1"]


def test_a_network_of_the_host_is_not_replaced_and_its_parts_are_installed() -> None:
    table = Table().change(ONE, "10.88.0.0/24", "10.88.0.128/25")
    assert table.gateways("10.88.0.0/24", "10.88.0.128/25") == [None, "1"]
    assert table.reason("10.88.0.0/24") == Reason.LOCAL


def test_a_prefix_that_is_rejected_and_withdrawn_leaves_nothing() -> None:
    table = Table().change(ONE, "127.0.0.0/8").change(NO_PATHS, "127.0.0.0/8")
    assert table.routes.route(IPV4_UNICAST, wire("127.0.0.0/8")) is None
    assert table.routes.families == []


def test_an_instance_that_is_gone_has_no_routes() -> None:
    table = Table().change(ONE, "192.0.2.0/24", "127.0.0.0/8")
    table.routes.clear()
    assert table.gateways("192.0.2.0/24") == [None]
    assert table.routes.families == []


def test_networks_that_the_host_gets_and_loses_are_judged_again() -> None:
    class Changing:
        """The routing of a host that changes."""

        present = HostRouting(HOST)

        def __getattr__(self, name: str) -> object:
            return getattr(self.present, name)

    routing = Changing()
    rules = ForwardingRules(routing, {"main": ""}, maximum=64, blackhole=False)  # type: ignore[arg-type]
    routes = InstanceRoutes("", routing, rules, names_none, OwnPrefixes())  # type: ignore[arg-type]
    prefixes = (wire("192.0.2.0/24"), wire("10.88.0.0/24"))
    routes.apply(BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, prefixes))
    assert [*routes.next_hops(IPV4_UNICAST, prefixes)] == [prefixes[0]]
    routing.present = HostRouting(None)
    routes.judge_prefixes()
    assert [*routes.next_hops(IPV4_UNICAST, prefixes)] == [*prefixes]


def test_the_prefixes_of_some_paths_are_found() -> None:
    table = Table().change(ONE, "192.0.2.0/24", "203.0.113.0/24").change(TWO, "198.51.100.0/24")
    some = [wire("203.0.113.0/24"), wire("198.51.100.0/24"), wire("10.0.0.0/8")]
    classes = {table.rules.class_of(ONE, IPV4_UNICAST)}
    assert table.routes.having(IPV4_UNICAST, classes, some) == [wire("203.0.113.0/24")]


def test_paths_that_no_prefix_has_are_forgotten() -> None:
    """Also where a change does not name the paths before: a table that is announced again."""
    table = Table().change(ONE, "192.0.2.0/24", "203.0.113.0/24")
    (one,) = table.rules.classes
    table.change(TWO, "192.0.2.0/24")
    assert len(list(table.rules.classes)) == 2
    table.change(TWO, "203.0.113.0/24")
    (two,) = table.rules.classes
    assert two is not one
    table.routes.withdraw(IPV4_UNICAST, [wire("192.0.2.0/24"), wire("198.51.100.0/24")])
    assert list(table.rules.classes) == [two]
    table.change(NO_PATHS, "203.0.113.0/24")
    assert not list(table.rules.classes)
    table.change(ONE, "192.0.2.0/24").routes.clear()
    assert not list(table.rules.classes)
