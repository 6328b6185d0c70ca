"""Events of Services that no node advertises, once per Service, and of Services that begin to be."""

from __future__ import annotations

from reconcilers.model import ObjectRef
from reconcilers.report.service_events import GRACE_SECONDS, SelectedService, ServiceEvents

WEB = ObjectRef("Service", "shop", "web")
API = ObjectRef("Service", "shop", "api")
ADDRESS = "198.51.100.7"


def reasons(state: ServiceEvents, now: float, *refs: ObjectRef, up: set[ObjectRef]) -> list[str]:
    services = {
        ref: SelectedService(ref, "u", (ADDRESS,), () if ref in up else (ADDRESS,)) for ref in refs
    }
    events = state.changes(services, now)
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
    (event,) = state.changes({WEB: many}, GRACE_SECONDS)
    assert (event.type, event.regarding.uid, event.shared) == ("Warning", "u", False)
    assert "198.51.100.3 and 2 more" in event.note
    assert "kubectl waggle explain shop/web --all-nodes" in event.note


def test_of_two_addresses_the_event_names_the_one_that_no_node_advertises() -> None:
    state = ServiceEvents()
    dual = SelectedService(WEB, "u", (ADDRESS, "2001:db8::7"), ("2001:db8::7",))
    list(state.changes({WEB: dual}, 0))
    (event,) = state.changes({WEB: dual}, GRACE_SECONDS)
    assert event.note.startswith("not advertised by any node: 2001:db8::7;")
