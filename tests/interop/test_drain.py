"""A node that is cordoned, as BIRD sees it: routes that are last or gone, on sessions that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, Lab, running_lab
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

WEB = "198.51.100.10/32"


def cordon(lab: Lab, *, on: bool) -> None:
    """Cordon the node, or undo it."""
    text = (lab.agent.manifests / "bgp.yaml").read_text()
    plain = text.replace("  unschedulable: true\n", "")
    cordoned = plain.replace("spec:\n  podCIDRs:", "spec:\n  unschedulable: true\n  podCIDRs:", 1)
    assert cordoned != plain
    lab.agent.write("bgp.yaml", cordoned if on else plain)


def test_routes_of_a_cordoned_node_get_graceful_shutdown_on_the_same_session(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    flags = ("--drain=deprefer", "--drain-prepend=2")
    with running_lab("bird", tmp_path, "ebgp-ipv4", "ibgp-ipv4", arguments=flags) as lab:
        eventually(lab.assert_established, context=lab.logs)
        lab.keeps_promises()
        before = lab.session_tokens()
        cordon(lab, on=True)

        def last() -> None:
            for name in lab.routers:
                for route in lab.held(name).values():
                    assert "65535:0" in route.communities, name
            external, internal = lab.held("ebgp-ipv4"), lab.held("ibgp-ipv4")
            assert {route.as_path for route in external.values()} == {(ASN, ASN, ASN)}
            assert {route.as_path for route in internal.values()} == {()}
            assert {route.local_preference for route in internal.values()} == {0}

        eventually(last, context=lab.logs)
        assert "65001:80" in lab.held("ebgp-ipv4")[WEB].communities
        assert lab.agent.ask("/v1/health")
        cordon(lab, on=False)
        lab.keeps_promises()
        assert lab.session_tokens() == before


def test_routes_of_a_cordoned_node_are_withdrawn_and_advertised_again_on_the_same_session(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    with running_lab("bird", tmp_path, "ebgp-ipv4", arguments=("--drain=withdraw",)) as lab:
        eventually(lab.assert_established, context=lab.logs)
        lab.keeps_promises()
        before = lab.session_tokens()
        cordon(lab, on=True)

        def gone() -> None:
            assert lab.held("ebgp-ipv4") == {}

        eventually(gone, context=lab.logs)
        lab.assert_established()
        items = lab.agent.command("explain", WEB)["items"]
        assert {item["reason"] for item in items} == {"Drained"}
        cordon(lab, on=False)
        lab.keeps_promises()
        assert lab.session_tokens() == before
