"""Objects with thousands of errors: of each list the first are reported, and the rest is counted."""

from __future__ import annotations

from typing import Any

from resources.errors import MAX_LISTED_ERRORS, FieldError, InvalidObject
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.metallb.kinds import IP_ADDRESS_POOL
from tests.reconcilers.frrk8s.build import configuration, neighbor, router

MANY = 10 * MAX_LISTED_ERRORS


def test_entries_of_a_wrong_type() -> None:
    pool = {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {"name": "p", "namespace": "metallb-system"},
        "spec": {"addresses": [*range(MANY)], "autoAssign": "no"},
    }
    found = errors_of(pool)
    assert found[0].path == "spec.addresses[0]"
    more = MANY - MAX_LISTED_ERRORS
    assert [str(error) for error in found[MAX_LISTED_ERRORS:]] == [
        f"spec.addresses: {more} more entries are not checked: the entries before have 100 problems",
        "spec.autoAssign: expected a boolean, got a string 'no'",
    ]


def errors_of(value: dict[str, Any]) -> tuple[FieldError, ...]:
    try:
        row = IP_ADDRESS_POOL.decode(value)
    except InvalidObject as error:
        return error.errors
    return row.errors


def test_unknown_fields_of_entries() -> None:
    spec = {"bgp": {"routers": [router(*[neighbor(extra=1)] * MANY, more=1)]}}
    found = FRR_CONFIGURATION.unknown_fields(configuration("x", spec))
    assert [error.path for error in found[MAX_LISTED_ERRORS - 1 :]] == [
        f"spec.bgp.routers[0].neighbors[{MAX_LISTED_ERRORS - 1}].extra",
        "spec.bgp.routers[0].neighbors",
        "spec.bgp.routers[0].more",
    ]


def test_unknown_fields_of_one_object() -> None:
    spec = {f"field{number}": 1 for number in range(MANY)}
    found = FRR_CONFIGURATION.unknown_fields(configuration("x", spec))
    assert len(found) == MAX_LISTED_ERRORS + 1
    assert str(found[-1]) == f"spec: {MANY - MAX_LISTED_ERRORS} more unknown fields, ignored"
