"""What the session with a neighbour is made of."""

from __future__ import annotations

import pytest

from tests.reconcilers.frrk8s.one_object import broken, of_neighbor


def test_defaults_are_filled_in() -> None:
    session = of_neighbor().session
    assert session == of_neighbor(port=179, connectTime="1m").session
    assert (session.asn, session.port, session.sourceaddress) == (64950, 179, None)
    assert not session.dual_stack


def test_a_session_by_interface_has_both_families() -> None:
    assert of_neighbor(address="", interface="eth0").session.dual_stack


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("asn", {"asn": 0}),
        ("asn", {"dynamicASN": "external"}),
        ("port", {"port": 0}),
        ("sourceaddress", {"sourceaddress": "192.0.2.256"}),
        ("sourceaddress", {"sourceaddress": "2001:db8::1"}),
        ("bfdProfile", {"bfdProfile": "quick"}),
        ("localASN", {"localASN": 64900}),
        ("localASN", {"localASN": 64950}),
        ("localASN", {"asn": 64900, "localASN": 65000}),
        ("toAdvertise.nextHop.ipv4", {"toAdvertise": {"nextHop": {"ipv4": "2001:db8::1"}}}),
        ("toAdvertise.nextHop.ipv6", {"toAdvertise": {"nextHop": {"ipv6": "2001:db8::1"}}}),
    ],
)
def test_settings_that_cannot_be(field: str, settings: dict[str, object]) -> None:
    assert [path for path, _ in broken(**settings)] == [field]


def test_the_source_may_be_an_interface() -> None:
    assert of_neighbor(sourceaddress="eth0.100").session.sourceaddress == "eth0.100"
