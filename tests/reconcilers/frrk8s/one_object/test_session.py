"""What the session with a neighbour is made of."""

from __future__ import annotations

import pytest

from reconcilers.frrk8s.one_object import SECRETS_NAMESPACE
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import FieldRef, ObjectRef, SecretRef
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.frrk8s.build import NAMESPACE, configuration, neighbor, router, unit
from tests.reconcilers.frrk8s.one_object import broken, compiled, of_neighbor


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


REF = ObjectRef("FRRConfiguration", NAMESPACE, "a")
SECRET = {"passwordSecret": {"name": "s"}}


def test_a_password_is_a_field_of_the_object_or_a_secret_of_its_namespace() -> None:
    assert of_neighbor().session.password is None
    assert of_neighbor(**SECRET).session.password == SecretRef(NAMESPACE, "s")
    field = "spec.bgp.routers[0].neighbors[0].password"
    assert of_neighbor(password="xyz").session.password == FieldRef(REF, field)


def test_a_rendered_object_names_the_namespace_of_its_secrets() -> None:
    value = configuration("a", {"bgp": {"routers": [router(neighbor(**SECRET))]}})
    value["metadata"]["annotations"] = {SECRETS_NAMESPACE: "metallb-system"}
    found = compiled(Unit(REF, FRR_CONFIGURATION.decode(value)))
    assert found.passwords[0].session.password == SecretRef("metallb-system", "s")


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("passwordSecret", {"password": "xyz", **SECRET}),
        ("passwordSecret.name", {"passwordSecret": {"name": "No_Name"}}),
        ("passwordSecret", {"address": "", "interface": "eth0", **SECRET}),
        ("password", {"password": "x" * 81}),
    ],
)
def test_passwords_that_cannot_be(field: str, settings: dict[str, object]) -> None:
    found = broken(**settings)
    assert [path for path, _ in found] == [field]
    assert "xyz" not in found[0][1]
    assert "xxx" not in found[0][1]


def test_the_passwords_of_an_object_are_listed() -> None:
    found = compiled(unit("a", router(neighbor(), neighbor(address="203.0.113.10", **SECRET))))
    assert [part.key.end for part in found.passwords] == ["203.0.113.10"]


def test_an_empty_password_is_none_beside_a_secret_and_by_interface_too() -> None:
    part = of_neighbor(password="")
    assert (part.session.password, part.settings.password) == (None, None)
    assert of_neighbor(password="", **SECRET).session.password == SecretRef(NAMESPACE, "s")
    assert of_neighbor(address="", interface="eth0", password="").session.password is None


def test_a_neighbor_has_the_timers_of_frr_unless_it_sets_its_own() -> None:
    session = of_neighbor().session
    assert (session.hold_time, session.keepalive_time, session.connect_time) == (180, 60, 60)
    session = of_neighbor(holdTime="9s", keepaliveTime="3s", connectTime="1m").session
    assert (session.hold_time, session.keepalive_time, session.connect_time) == (9, 3, 60)


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("holdTime", {"holdTime": "9s"}),
        ("keepaliveTime", {"keepaliveTime": "3s"}),
        ("holdTime", {"holdTime": "2s", "keepaliveTime": "1s"}),
        ("holdTime", {"holdTime": "65536s", "keepaliveTime": "1s"}),
        ("keepaliveTime", {"holdTime": "9s", "keepaliveTime": "10s"}),
        ("holdTime", {"holdTime": "nine", "keepaliveTime": "3s"}),
        ("connectTime", {"connectTime": "500ms"}),
        ("connectTime", {"connectTime": "65536s"}),
    ],
)
def test_timers_that_cannot_be(field: str, settings: dict[str, str]) -> None:
    assert [path for path, _ in broken(**settings)] == [field]


def test_a_hold_time_of_zero_has_no_keepalives() -> None:
    session = of_neighbor(holdTime="0s", keepaliveTime="0s").session
    assert (session.hold_time, session.keepalive_time) == (0, 0)
