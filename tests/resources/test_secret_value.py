"""A password that is a field of an object: compared by value, shown and stored nowhere."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from resources.errors import InvalidObject
from resources.kind import Kind, Kinds
from resources.meta import Resource, Struct
from resources.secret_value import SecretValue
from resources.snapshot_codec import decode, encode


class Spec(Struct, frozen=True):
    password: SecretValue | None = None


class Peering(Resource, frozen=True):
    spec: Spec


PEERING = Kind(
    "Peering",
    Peering,
    group="test.waggle.dev",
    versions=("v1",),
    plural="peerings",
    namespaced=False,
    table="peerings",
    strict=True,
)


def peering(password: object) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"password": password}}


def test_a_field_is_decoded_from_both_forms_of_json_and_compared_by_value() -> None:
    row = PEERING.decode(peering("geheim"))
    assert row == PEERING.decode_json(msgspec.json.encode(peering("geheim")))
    assert row != PEERING.decode(peering("anders"))
    assert row.spec.password is not None
    assert row.spec.password.reveal() == b"geheim"


def test_neither_the_row_nor_an_error_shows_the_octets() -> None:
    assert "geheim" not in repr(PEERING.decode(peering("geheim")))
    with pytest.raises(InvalidObject) as caught:
        PEERING.decode(peering(48151623))
    assert "48151623" not in str(caught.value)
    assert "spec.password: expected a string, got an integer" in str(caught.value)
    assert "geheim" not in str(PEERING.unknown_fields(peering("geheim")))
    with pytest.raises(TypeError):
        msgspec.json.encode(PEERING.decode(peering("geheim")))


def test_a_snapshot_stores_that_there_is_a_password_and_reads_back_an_unusable_one() -> None:
    row = PEERING.decode(peering("geheim"))
    octets = b"".join(encode("n1", 0.0, {"Peering": [row]}))
    assert b"geheim" not in octets
    (read,) = decode(octets, Kinds((PEERING,))).rows["Peering"]
    assert isinstance(read, Peering)
    assert read.spec.password is not None
    assert not read.spec.password.known
    assert read != row
    with pytest.raises(LookupError):
        read.spec.password.reveal()
