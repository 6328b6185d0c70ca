"""Events of Services that no node advertises, once per Service, and of Services that begin to be."""

from __future__ import annotations

from reconcilers.model import ObjectRef
from reconcilers.report.service_events import (
    GRACE_SECONDS,
    SelectedService,
    ServiceChange,
    ServiceEvents,
    occurrences,
)

WEB = ObjectRef("Service", "shop", "web")
API = ObjectRef("Service", "shop", "api")
ADDRESS = "198.51.100.7"


def reasons(state: ServiceEvents, now: float, *refs: ObjectRef, up: set[ObjectRef]) -> list[str]:
    services = {
        ref: SelectedService(ref, "u", (ADDRESS,), () if ref in up else (ADDRESS,)) for ref in refs
    }
    events = occurrences(state.changes(services, now))
    return [f"{event.reason} {event.regarding.ref.name}" for event in events]


def test_a_service_without_a_node_is_reported_once_after_the_grace() -> None:
    state = ServiceEvents()
    assert reasons(state, 0, WEB, up=set()) == []
    assert reasons(state, GRACE_SECONDS - 1, WEB, up=set()) == []
    assert reasons(state, GRACE_SECONDS, WEB, up=set()) == ["NotAdvertised web"]
    assert reasons(state, GRACE_SECONDS + 1000, WEB, up=set()) == []
    assert reasons(state, GRACE_SECONDS + 1001, WEB, up={WEB}) == ["Advertised web"]
    assert reasons(state, GRACE_SECONDS + 1002, WEB, up={WEB}) == []


def test_a_service_that_is_advertised_before_the_grace_has_one_event() -> None:
    state = ServiceEvents()
    assert reasons(state, 0, WEB, up=set()) == []
    assert reasons(state, 5, WEB, up={WEB}) == ["Advertised web"]
    assert reasons(state, GRACE_SECONDS + 5, WEB, up={WEB}) == []


def test_a_new_leader_reports_no_service_that_is_advertised() -> None:
    state = ServiceEvents()
    assert reasons(state, 0, WEB, up={WEB}) == []
    assert reasons(state, 60, WEB, API, up={WEB, API}) == ["Advertised api"]


def test_a_service_that_is_selected_no_more_is_forgotten() -> None:
    state = ServiceEvents()
    reasons(state, 0, WEB, up=set())
    assert reasons(state, GRACE_SECONDS, up=set()) == []
    assert reasons(state, GRACE_SECONDS + 1, WEB, up=set()) == []


def test_the_event_names_the_addresses_and_the_command_with_the_reasons() -> None:
    state = ServiceEvents()
    addresses = tuple(f"198.51.100.{n}" for n in range(6))
    many = SelectedService(WEB, "u", addresses, addresses)
    list(state.changes({WEB: many}, 0))
    (event,) = occurrences(state.changes({WEB: many}, GRACE_SECONDS))
    assert (event.type, event.regarding.uid, event.shared) == ("Warning", "u", False)
    assert "198.51.100.3 and 2 more" in event.note
    assert "kubectl waggle explain shop/web --all-nodes" in event.note


def test_of_two_addresses_the_event_names_the_unadvertised_address() -> None:
    state = ServiceEvents()
    dual = SelectedService(WEB, "u", (ADDRESS, "2001:db8::7"), ("2001:db8::7",))
    list(state.changes({WEB: dual}, 0))
    (event,) = occurrences(state.changes({WEB: dual}, GRACE_SECONDS))
    assert event.note.startswith("not advertised by any node: 2001:db8::7;")


A, B, C = "198.51.100.1", "198.51.100.2", "198.51.100.3"


def notes(state: ServiceEvents, now: float, missing: tuple[str, ...]) -> list[str]:
    """Return reason and addresses of the Events of a Service with three addresses."""
    service = SelectedService(WEB, "u", (A, B, C), missing)
    found = occurrences(state.changes({WEB: service}, now))
    return [f"{event.reason}: {event.note.split(': ')[1].partition(';')[0]}" for event in found]


def test_each_address_of_a_service_that_begins_to_be_advertised_is_in_an_event() -> None:
    state = ServiceEvents()
    assert notes(state, 0, (A, B, C)) == []
    assert notes(state, GRACE_SECONDS, (A, B, C)) == [f"NotAdvertised: {A}, {B}, {C}"]
    assert notes(state, GRACE_SECONDS + 1, (B, C)) == [f"Advertised: {A}"]
    assert notes(state, GRACE_SECONDS + 2, (B, C)) == []
    assert notes(state, GRACE_SECONDS + 3, ()) == [f"Advertised: {B}, {C}"]  # one for both
    assert notes(state, GRACE_SECONDS + 4, ()) == []


def test_each_address_that_ceases_to_be_advertised_is_in_an_event_with_the_others() -> None:
    state = ServiceEvents()
    notes(state, 0, (A,))
    assert notes(state, GRACE_SECONDS, (A,)) == [f"NotAdvertised: {A}"]
    assert notes(state, GRACE_SECONDS + 10, (A, B)) == []
    assert notes(state, 2 * GRACE_SECONDS + 9, (A, B)) == []
    assert notes(state, 2 * GRACE_SECONDS + 10, (A, B)) == [f"NotAdvertised: {A}, {B}"]
    assert notes(state, 2 * GRACE_SECONDS + 11, (A, B)) == []


def test_an_address_that_begins_while_another_ceases_is_in_an_event_of_its_own() -> None:
    state = ServiceEvents()
    notes(state, 0, (A, B))
    notes(state, GRACE_SECONDS, (A, B))
    notes(state, GRACE_SECONDS + 1, (A, B, C))
    assert notes(state, 2 * GRACE_SECONDS + 1, (A, C)) == [
        f"NotAdvertised: {A}, {C}",
        f"Advertised: {B}",
    ]


def test_an_address_that_is_new_on_a_service_begins_to_be_advertised() -> None:
    state = ServiceEvents()
    list(state.changes({WEB: SelectedService(WEB, "u", (A,))}, 0))
    (change,) = state.changes({WEB: SelectedService(WEB, "u", (A, B))}, 60)
    assert change == ServiceChange(WEB, "u", True, (B,))


def test_the_addresses_of_several_dialects_are_in_one_event_for_each_transition() -> None:
    changes = [
        ServiceChange(WEB, "u", False, (A,)),
        ServiceChange(WEB, "u", True, (C,)),
        ServiceChange(WEB, "u", False, (A, B)),
        ServiceChange(API, "v", False, (A,)),
    ]
    assert [
        (e.regarding.ref.name, e.reason, f"{A}, {B}" in e.note) for e in occurrences(changes)
    ] == [
        ("web", "NotAdvertised", True),
        ("web", "Advertised", False),
        ("api", "NotAdvertised", False),
    ]
