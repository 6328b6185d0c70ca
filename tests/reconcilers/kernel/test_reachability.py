"""What a node depends on, and routes that wait for approval."""

from __future__ import annotations

from reconcilers.kernel.reachability import MAX_NODES, Target, targets
from reconcilers.kernel.withheld_routes import routes_of
from speaker.api import NO_PATHS
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    MAIN,
    ONE,
    PREFIX,
    TWO,
    Agent,
    hops,
    wire,
)


def test_the_api_server_the_next_nodes_and_dns_servers_are_tried() -> None:
    nodes = [f"10.0.0.{n}" for n in range(1, 30)]
    resolv_conf = (
        "# none\nnameserver 127.0.0.53\nnameserver 10.0.0.53\noptions ndots:5\nnameserver\n"
    )
    found = targets("https://api.example:6443", nodes, ["10.0.0.27"], resolv_conf)
    assert found[0] == Target("the API server", "api.example", 6443)
    assert found[-1] == Target("the DNS server", "10.0.0.53", 53)
    last = [target.address.rpartition(".")[2] for target in found[1:-1]]
    assert last == ["28", "29", "1", "2", "3", "4", "5", "6"]
    assert len(last) == MAX_NODES


def test_prefixes_of_one_address_are_nodes_and_other_texts_are_none() -> None:
    nodes = ["10.0.0.1/32", "10.0.1.0/24", "worker-1", "fd00::1"]
    found = targets("", nodes, [], "")
    assert [target.address for target in found] == ["10.0.0.1", "fd00::1"]
    assert targets("https://[fd00::2]", [], [], "")[0].port == 443
    assert targets("https://x:port", [], [], "") == ()


def test_withheld_routes_are_removed_and_installed_again_when_they_are_released() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    withheld = agent.kernel.withheld
    assert routes_of(withheld.take_unchecked()) == {MAIN: {wire(PREFIX)}}
    agent.change(ONE, "20.0.0.0/8", "21.0.0.0/8")
    agent.change(NO_PATHS, "21.0.0.0/8", before=ONE)
    batch = routes_of(withheld.take_unchecked())
    withheld.withhold(batch)
    agent.settle()
    assert agent.routes == {PREFIX: hops("10.88.0.1")}
    # A change of its path is none of its approval.
    agent.change(TWO, "20.0.0.0/8", before=ONE)
    assert agent.routes == {PREFIX: hops("10.88.0.1")}
    assert not withheld.is_due
    withheld.release()
    agent.settle()
    assert agent.routes == {PREFIX: hops("10.88.0.1"), "20.0.0.0/8": hops("10.88.0.2")}
    assert withheld.is_due


def test_a_route_of_an_earlier_run_is_withheld_before_the_deferral_is_over() -> None:
    agent = Agent(deferred=True).start().table(ONE, PREFIX)
    agent.kernel.withheld.withhold(routes_of(agent.kernel.withheld.take_unchecked()))
    assert agent.settle().routes == {}
