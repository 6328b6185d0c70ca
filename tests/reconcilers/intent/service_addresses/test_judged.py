"""Objects whose addresses may be judged differently, however many addresses have changed."""

from __future__ import annotations

import pytest

from reconcilers.intent.service_addresses import judged
from reconcilers.intent.service_addresses.address_rules import AddressChanges
from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.intent.service_addresses.judged import JudgedAddresses
from reconcilers.prefixes import host_route

OBJECTS = {"a": "192.0.2.1", "b": "192.0.2.9", "c": "2001:db8::1", "d": "2001:db8::9"}


@pytest.mark.parametrize("most", [0, 2, 1024])
@pytest.mark.parametrize(
    ("changes", "affected"),
    [
        (AddressChanges(), ""),
        (AddressChanges(AddressSet.of(["192.0.2.1", "2001:db8::9"])), "ad"),
        (AddressChanges(AddressSet.of(["192.0.2.0-192.0.2.8", "2001:db8::/64"])), "acd"),
        (AddressChanges(AddressSet.of(["192.0.2.2"])), ""),
        (AddressChanges(AddressSet(), frozenset({"of-b"})), "b"),
        (AddressChanges(host_routes={host_route("192.0.2.9")[1]}), "b"),
        (
            AddressChanges(
                AddressSet.of(["192.0.2.1"]), host_routes={host_route("2001:db8::1")[1]}
            ),
            "ac",
        ),
    ],
)
def test_objects_with_a_changed_address_are_affected(
    monkeypatch: pytest.MonkeyPatch, changes: AddressChanges, affected: str, most: int
) -> None:
    monkeypatch.setattr(judged, "SINGLE_ADDRESSES", most)
    addresses = JudgedAddresses()
    for name, text in OBJECTS.items():
        addresses.note(("services", name), f"of-{name}", [host_route(text)[1]], added=False)
    assert [key for _, key in addresses.affected(changes)] == list(affected)


def test_addresses_are_added_to_or_replace_former_addresses() -> None:
    addresses = JudgedAddresses()
    first, second = (host_route(text)[1] for text in ("192.0.2.1", "192.0.2.9"))

    def affected(nlri: bytes) -> bool:
        return bool([*addresses.affected(AddressChanges(host_routes={nlri}))])

    def note(*nlri: bytes, added: bool) -> tuple[bool, bool]:
        addresses.note(("services", "a"), "of-a", nlri, added=added)
        return affected(first), affected(second)

    assert note(first, added=False) == (True, False)
    assert note(first, added=True) == (True, False)
    assert note(second, added=True) == (True, True)
    assert note(second, added=False) == (False, True)
    assert note(second, added=False) == (False, True)
    assert note(added=False) == (False, False)


def test_few_addresses_are_host_routes_and_many_are_not() -> None:
    addresses = AddressSet.of(["192.0.2.1-192.0.2.2", "2001:db8::1"])
    texts = ("192.0.2.1", "192.0.2.2", "2001:db8::1")
    assert addresses.host_routes(3) == {host_route(text)[1] for text in texts}
    assert addresses.host_routes(2) is None
    assert AddressSet.of(["::/0"]).host_routes(1024) is None
