"""Where the password of a neighbour is."""

from __future__ import annotations

import pytest

from reconcilers.frrk8s.one_object import SECRETS_NAMESPACE
from reconcilers.frrk8s.unit import Unit
from reconcilers.model import FieldRef, ObjectRef, SecretRef
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.frrk8s.build import NAMESPACE, configuration, neighbor, router, unit
from tests.reconcilers.frrk8s.one_object import broken, compiled, of_neighbor

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
