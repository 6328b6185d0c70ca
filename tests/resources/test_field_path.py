"""Fields of rows by the paths of problems."""

from __future__ import annotations

import msgspec
import pytest

from resources.field_path import value_at
from resources.meta import Struct


class Neighbor(Struct, frozen=True, kw_only=True):
    local_asn: int
    password: str | None = None


class Spec(Struct, frozen=True, kw_only=True):
    neighbors: tuple[Neighbor, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class Row(msgspec.Struct):
    spec: Spec


NEIGHBORS = (Neighbor(local_asn=1), Neighbor(local_asn=2, password="x"))
ROW = Row(Spec(neighbors=NEIGHBORS, labels={"a": "b"}))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.neighbors[1].password", "x"),
        ("spec.neighbors[0].password", None),
        ("spec.neighbors[0].localASN", 1),
        ("spec.labels.a", "b"),
        ("spec.labels.b", None),
        ("spec.neighbors[2].password", None),
        ("spec.neighbors[x].password", None),
        ("spec.neighbors.password", None),
        ("spec.absent.password", None),
        ("spec.neighbors[1].password.x", None),
    ],
)
def test_a_path_leads_to_the_value_or_to_none(path: str, value: object) -> None:
    assert value_at(ROW, path) == value
