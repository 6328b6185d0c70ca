"""The options of the FRR-k8s dialect."""

from typing import Any

import pytest

from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions
from resources.core.kinds import NODE
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.option_declarations import InvalidOption
from resources.tables import Tables
from tests.reconcilers.build import Cluster, node
from tests.reconcilers.frrk8s.build import configuration, neighbor, router


def test_blocked_prefixes_are_canonical_and_each_once() -> None:
    given = Frrk8sOptions(always_block=("fd00::1/8, 10.96.1.2/12", "10.96.0.0/12"))
    assert given.blocked == ("10.96.0.0/12", "fd00::/8")


@pytest.mark.parametrize("text", ["10.96.0.1", "10.96.0.0/33", "10.96.0.0/255.240.0.0", "all"])
def test_what_is_not_a_prefix_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="--always-block"):
        Frrk8sOptions(always_block=(text,))


def test_a_session_has_the_blocked_prefixes_of_its_families() -> None:
    class Dialect(Frrk8sDialect):
        def __init__(self, tables: Tables, options: Any) -> None:  # noqa: ANN401, ARG002
            super().__init__(tables, Frrk8sOptions(always_block=("10.96.0.0/12", "fd00::/8")))

    it = Cluster(also=[Dialect])
    it.put(NODE, node())
    neighbors = [
        neighbor(address="203.0.113.9"),
        neighbor(address="2001:db8::9"),
        neighbor(address="203.0.113.10", dualStackAddressFamily=True),
    ]
    it.put(FRR_CONFIGURATION, configuration("x", {"bgp": {"routers": [router(*neighbors)]}}))
    it.run()
    (instance,) = it.render()["instances"]
    blocked = {p["address"]: [r["prefix"] for r in p["neverAccept"]] for p in instance["peers"]}
    assert blocked == {
        "203.0.113.9": ["10.96.0.0/12"],
        "2001:db8::9": ["fd00::/8"],
        "203.0.113.10": ["10.96.0.0/12", "fd00::/8"],
    }
