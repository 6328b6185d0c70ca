"""What differs between two states of a row: fields, bounds, and no secret."""

from __future__ import annotations

import sys
from ipaddress import IPv4Network

import msgspec
import pytest

from cells.history.differences import COMPARED, MOST_CHARACTERS, MOST_FIELDS, differences
from reconcilers.sliced_work import finish
from resources.meta import ObjectMeta, Resource, Struct
from resources.secret_value import SecretValue


class Spec(Struct, frozen=True):
    host_port: int = 0
    password: SecretValue | None = None
    raw: str = ""
    peers: tuple[str, ...] = ()


class Thing(Resource, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: Spec = Spec()


def thing(spec: Spec | None = None, **metadata: object) -> Thing:
    return Thing(metadata=ObjectMeta(name="t", **metadata), spec=spec or Spec())  # type: ignore[arg-type]


def texts(old: object, new: object) -> dict[str, tuple[str | None, str | None]]:
    return {of.field: (of.old, of.new) for of in finish(differences(old, new))}


def test_fields_have_the_names_of_the_api_and_both_values() -> None:
    before = thing(Spec(host_port=179, peers=("a", "b")), labels={"a": "1"})
    after = thing(Spec(host_port=1790, peers=("b",)), labels={"b": "2"}, generation=4)
    assert texts(before, after) == {
        "metadata.labels.a": ("1", None),
        "metadata.labels.b": (None, "2"),
        "spec.hostPort": ("179", "1790"),
        "spec.peers": ("a, b", "b"),
    }
    assert not finish(differences(before, before))


def test_a_new_object_has_the_fields_that_are_set() -> None:
    assert texts(None, thing(Spec(host_port=1))) == {"spec.hostPort": (None, "1")}
    assert texts(thing(Spec(host_port=1)), None) == {"spec.hostPort": ("1", None)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Spec(password=SecretValue(b"hunter1")), Spec(password=SecretValue(b"hunter2"))),
        (Spec(raw="neighbor x password hunter1"), Spec(raw="neighbor x password hunter2")),
        (Spec(raw="a\nhunter1\nb"), Spec(raw="a\nhunter2")),
    ],
)
def test_what_may_be_a_secret_is_withheld_and_its_change_is_shown(
    before: Spec, after: Spec
) -> None:
    (change,) = finish(differences(before, after))
    assert "hunter" not in str(msgspec.to_builtins(change))
    assert change.old


@pytest.mark.parametrize(
    "text",
    [
        "passphrase hunter1",
        "https://me:hunter1@git.example/x",
        "neighbor x tcp md5 hunter1",
        "Authorization: Bearer hunter1",
        "api_key=hunter1",
    ],
)
def test_texts_with_a_word_of_secrets_are_withheld(text: str) -> None:
    assert texts(thing(), thing(Spec(raw=text))) == {"spec.raw": (None, "***")}


def test_of_a_long_list_the_part_that_differs_is_shown() -> None:
    prefixes = tuple(f"10.0.{number >> 8}.{number & 255}/32" for number in range(10_000))
    before, after = (
        thing(Spec(peers=prefixes)),
        thing(Spec(peers=(*prefixes[:700], *prefixes[701:]))),
    )
    assert texts(before, after) == {"spec.peers[700...]": (prefixes[700], None)}
    assert texts(after, before) == {"spec.peers[700...]": (None, prefixes[700])}
    assert texts(before, thing(Spec(peers=(*prefixes, "b")))) == {
        "spec.peers[10000...]": (None, "b")
    }


def test_elements_of_equal_number_are_compared_field_by_field() -> None:
    before, after = ({"routers": [{"asn": 1, "id": "a"}, {"asn": asn}]} for asn in (2, 3))
    assert texts(before, after) == {"routers[1].asn": ("2", "3")}


def test_an_annotation_is_named_without_its_value() -> None:
    before, after = (thing(annotations={"peers": f"hunter{n}"}) for n in (1, 2))
    assert texts(before, after) == {"metadata.annotations.peers": ("***", "***")}


def test_fields_and_texts_are_bounded() -> None:
    many = {str(number): "x" * 10_000 for number in range(1000)}
    *fields, others = finish(differences({}, many))
    assert len(fields) == MOST_FIELDS
    assert others.field == f"{1000 - MOST_FIELDS} more fields"
    assert all(len(of.new or "") == MOST_CHARACTERS for of in fields)


def test_long_lists_are_compared_in_slices() -> None:
    names = tuple(f"name-{number}" for number in range(3 * COMPARED))
    slices = differences(thing(Spec(peers=names)), thing(Spec(peers=(*names[:-1], "other"))))
    assert sum(1 for _ in slices) == 2
    assert texts(thing(Spec(peers=names)), thing(Spec(peers=names[1:]))) == {
        "spec.peers[0...]": ("name-0", None)
    }


def test_within_a_list_a_secret_is_withheld_and_other_values_are_texts() -> None:
    class Key(Struct, frozen=True):
        value: SecretValue | None = None
        network: IPv4Network = IPv4Network("10.0.0.0/8")

    after = {"keys": [Key(value=SecretValue(b"hunter1"), network=IPv4Network("192.0.2.0/24"))]}
    found = texts({}, after)["keys"][1]
    assert found == '[{"value":"***","network":"192.0.2.0/24"}]'


def test_what_is_equal_in_an_object_that_is_read_again_costs_few_calls() -> None:
    """A manifest is decoded whole: of a changed field all lists and mappings are other objects."""

    def read(port: int) -> Thing:
        labels = {str(number): "x" for number in range(8)}
        return thing(
            Spec(host_port=port, peers=tuple(labels)), labels=labels, annotations={**labels}
        )

    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    objects = read(1), read(2)
    finish(differences(*objects))  # the names of the fields are found out
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        changed = finish(differences(*objects))
    finally:
        sys.setprofile(before)
    assert [of.field for of in changed] == ["spec.hostPort"]
    assert calls < 20
