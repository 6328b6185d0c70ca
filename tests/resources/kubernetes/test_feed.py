"""What a feed makes of lists and watch events, without any connection."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from resources.core import Service
from resources.core.kinds import ENDPOINT_SLICE, NAMESPACE, SERVICE_CIDR
from resources.kind import Kind
from resources.kubernetes.errors import Expired, InvalidResponse, StatusError, UnconfirmedList
from resources.kubernetes.feed import Feed, older
from resources.kubernetes.listing import Listing
from resources.source import Delete, Upsert
from tests.support.kinds import ADVERTISEMENT, SECRET, SERVICE


def service(name: str, version: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    metadata = {"namespace": "shop", "name": name, "resourceVersion": str(version)}
    return {
        "metadata": metadata | more.pop("metadata", {}),
        "spec": {"type": "LoadBalancer"} | more,
    }


def line(what: str, obj: object) -> bytes:
    return json.dumps({"type": what, "object": obj}).encode()


def raws(*objects: object) -> list[msgspec.Raw]:
    return [msgspec.Raw(json.dumps(obj).encode()) for obj in objects]


def listed(feed: Feed[Any], version: str, *objects: object, now: float = 0.0) -> None:
    listing = Listing(feed)
    listing.begin(version)
    listing.add(raws(*objects))
    feed.replace(listing, now)


@pytest.fixture
def feed() -> Feed[Service]:
    made = Feed(SERVICE)
    listed(made, "100", service("web", 90), service("db", 95))
    return made


def test_a_list_replaces_all_rows(feed: Feed[Service]) -> None:
    assert set(feed.rows) == {("shop", "web"), ("shop", "db")}
    assert feed.version == "100"
    listed(feed, "110", service("web", 90))
    assert set(feed.rows) == {("shop", "web")}


def test_a_watch_adds_changes_and_removes(feed: Feed[Service]) -> None:
    added = feed.process_line(line("ADDED", service("new", 101)))
    assert isinstance(added, Upsert)
    assert added.object.metadata.name == "new"
    changed = feed.process_line(line("MODIFIED", service("new", 102, type="ClusterIP")))
    assert isinstance(changed, Upsert)
    assert changed.object.spec.type == "ClusterIP"
    assert feed.process_line(line("DELETED", service("new", 103))) == Delete(("shop", "new"))
    assert feed.version == "103"


def test_a_change_of_unused_fields_emits_no_event(feed: Feed[Service]) -> None:
    """A heartbeat, a condition or a resource version is in no row, and causes no event."""
    beat = service("web", 101, healthCheckNodePort=31000)
    assert feed.process_line(line("MODIFIED", beat)) is None
    assert feed.version == "101"


def test_the_last_applied_annotation_is_removed(feed: Feed[Service]) -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{...}", "a": "b"}
    event = feed.process_line(
        line("ADDED", service("new", 101, metadata={"annotations": annotations}))
    )
    assert isinstance(event, Upsert)
    assert event.object.metadata.annotations == {"a": "b"}


def test_a_bookmark_only_moves_the_version(feed: Feed[Service]) -> None:
    mark = {"metadata": {"resourceVersion": "150"}}
    assert feed.process_line(line("BOOKMARK", mark)) is None
    assert feed.process_line(line("BOOKMARK", mark)) is None
    assert feed.version == "150"
    assert len(feed.rows) == 2


def test_deleting_an_unknown_object_emits_no_event(feed: Feed[Service]) -> None:
    assert feed.process_line(line("DELETED", service("other", 101))) is None


@pytest.mark.parametrize(
    "status", [{"code": 410}, {"code": 500, "reason": "Expired"}, {"reason": "Gone"}]
)
def test_an_expired_error_event_requires_a_list(
    feed: Feed[Service], status: dict[str, object]
) -> None:
    with pytest.raises(Expired):
        feed.process_line(line("ERROR", {"kind": "Status", "message": "too old", **status}))


def test_other_error_events_are_the_servers_errors(feed: Feed[Service]) -> None:
    status = {"code": 429, "message": "slow down", "details": {"retryAfterSeconds": 7}}
    with pytest.raises(StatusError, match="429: slow down") as caught:
        feed.process_line(line("ERROR", status))
    assert caught.value.retry_after == 7


@pytest.mark.parametrize("version", [99, 100])
@pytest.mark.parametrize("what", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_with_an_older_version_requires_a_list(
    feed: Feed[Service], what: str, version: int
) -> None:
    """Events out of order: only a list is reliable, and no row is deleted."""
    with pytest.raises(Expired, match="out of order"):
        feed.process_line(line(what, service("web", version)))
    assert len(feed.rows) == 2


def test_a_bookmark_with_an_older_version_requires_a_list(feed: Feed[Service]) -> None:
    with pytest.raises(Expired):
        feed.process_line(line("BOOKMARK", {"metadata": {"resourceVersion": "50"}}))


@pytest.mark.parametrize(
    "octets",
    [
        b"upstream connect error",
        b"<html>",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": {}}',
        b'{"type": "ADDED", "object": 5}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": 7}}}',
        b'{"type": "SPLIT", "object": {"metadata": {"resourceVersion": "170"}}}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "170"',
        b"[" * 100_000,
        b'{"type": "ERROR", "object": "no"}',
    ],
)
def test_a_line_that_is_no_event_is_an_invalid_response(feed: Feed[Service], octets: bytes) -> None:
    with pytest.raises(InvalidResponse):
        feed.process_line(octets)
    assert (len(feed.rows), feed.version) == (2, "100")


def test_an_invalid_object_keeps_its_last_good_version(feed: Feed[Service]) -> None:
    bad = service("web", 101, clusterIP="10.0.0.999", type="LoadBalancer")
    assert feed.process_line(line("MODIFIED", bad)) is None
    assert feed.rows["shop", "web"].spec.cluster_ip == ""
    (problem,) = feed.problems["shop", "web"]
    assert str(problem).startswith("kubernetes: Service/shop/web: spec.clusterIP: ")
    listed(feed, "120", bad, service("db", 95))
    assert set(feed.rows) == {("shop", "web"), ("shop", "db")}
    assert feed.problems
    feed.process_line(line("MODIFIED", service("web", 121)))
    assert not feed.problems


def test_an_object_that_was_never_valid_is_a_problem_only(feed: Feed[Service]) -> None:
    assert feed.process_line(line("ADDED", service("new", 101, type="Mail"))) is None
    assert ("shop", "new") not in feed.rows
    assert ("shop", "new") in feed.problems
    feed.process_line(line("DELETED", service("new", 102, type="Mail")))
    assert not feed.problems


def test_every_error_of_an_object_is_reported(feed: Feed[Service]) -> None:
    feed.process_line(line("ADDED", service("new", 101, type="Mail", externalIPs=[4])))
    fields = [problem.field for problem in feed.problems["shop", "new"]]
    assert fields == ["spec.type", "spec.externalIPs[0]"]


def test_an_unknown_field_of_a_strict_kind_is_a_problem() -> None:
    feed = Feed(ADVERTISEMENT)
    entry = {"advertisementType": "PodCIDR", "atributes": {}}
    metadata = {"name": "pods", "resourceVersion": "7", "managedFields": [{}]}
    listed(feed, "100", {"metadata": metadata, "spec": {"advertisements": [entry]}})
    (problem,) = feed.problems["", "pods"]
    assert problem.field == "spec.advertisements[0].atributes"
    assert ("", "pods") in feed.rows


def test_a_secret_is_not_shown_in_problems() -> None:
    feed = Feed(SECRET, "kube-system")
    metadata = {"name": "key", "namespace": "kube-system", "resourceVersion": "7"}
    listed(feed, "100", {"metadata": metadata, "data": {"password": "c2VjcmV0"}})
    row = feed.rows["kube-system", "key"]
    assert row.data["password"].reveal() == b"secret"
    bad = {"metadata": metadata | {"resourceVersion": "101"}, "data": {"password": "!s3cr3t!"}}
    feed.process_line(line("MODIFIED", bad))
    assert "s3cr3t" not in repr(feed.problems)
    assert feed.rows["kube-system", "key"] == row


def held_feed(*names: str, hold: float = 60.0) -> Feed[Service]:
    made = Feed(SERVICE, hold=hold)
    listed(made, "100", *(service(name, 90) for name in names))
    return made


def known(feed: Feed[Any]) -> list[str]:
    return [name for _, name in feed.rows]


def test_f05_an_empty_list_is_believed_after_lists_have_confirmed_it_for_the_hold_time() -> None:
    feed = held_feed("web", "db")
    for now in (0.0, 1.0, 30.0, 59.9):
        listed(feed, "110", now=now)
        assert known(feed) == ["web", "db"]
        assert len(feed.held) == 2
    listed(feed, "110", now=60.0)
    assert known(feed) == []
    assert not feed.held


def test_f05_a_list_cut_in_half_is_held_and_its_changes_count() -> None:
    feed = held_feed("a", "b", "c", "d")
    listed(feed, "110", service("a", 105, type="ClusterIP"), service("b", 90), service("e", 106))
    assert known(feed) == ["a", "b", "c", "d", "e"]
    assert feed.rows["shop", "a"].spec.type == "ClusterIP"
    assert feed.held == {("shop", "c"), ("shop", "d")}


def test_f05_a_few_missing_objects_of_many_are_deleted_at_once() -> None:
    names = [f"s{number}" for number in range(20)]
    feed = held_feed(*names)
    listed(feed, "110", *(service(name, 90) for name in names[4:]))
    assert known(feed) == names[4:]


def test_f05_a_list_that_is_whole_again_ends_the_doubt() -> None:
    feed = held_feed("web", "db")
    listed(feed, "110", now=0.0)
    listed(feed, "111", service("web", 90), service("db", 90), now=50.0)
    assert not feed.held
    listed(feed, "112", now=60.0)
    assert known(feed) == ["web", "db"]


def test_f05_objects_that_are_missing_later_are_confirmed_anew() -> None:
    feed = held_feed("a", "b", "c", "d")
    listed(feed, "110", service("a", 90), service("b", 90), now=0.0)
    listed(feed, "111", now=60.0)
    assert known(feed) == ["a", "b", "c", "d"]
    listed(feed, "111", now=119.0)
    assert known(feed) == ["a", "b", "c", "d"]
    listed(feed, "111", now=120.0)
    assert known(feed) == []


def test_f05_a_held_object_is_deleted_at_once_by_a_watch() -> None:
    feed = held_feed("web", "db")
    listed(feed, "110")
    assert feed.process_line(line("DELETED", service("web", 120))) == Delete(("shop", "web"))
    assert feed.held == {("shop", "db")}
    feed.process_line(line("ADDED", service("db", 121)))
    assert not feed.held


def builtin(kind: Kind[Any], name: str) -> dict[str, Any]:
    """Return an object that every API server has, of an empty database, too."""
    metadata = {"name": name, "resourceVersion": "10", "uid": "made-again"}
    if kind.namespaced:
        metadata["namespace"] = "default"
    return {"metadata": metadata, "spec": {}, "endpoints": [], "addressType": "IPv4"}


NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"]


@pytest.mark.parametrize(
    ("kind", "built_in", "own", "seconds"),
    [
        (SERVICE, ["kubernetes"], ["web"], 5.0),
        (ENDPOINT_SLICE, ["kubernetes"], ["web-x7k"], 5.0),
        (NAMESPACE, NAMESPACES, ["shop"], 5.0),
        (NAMESPACE, NAMESPACES, ["shop", "lab"], 60.0),
        (SERVICE_CIDR, ["kubernetes"], ["more"], 5.0),
    ],
    ids=lambda value: value.name if isinstance(value, Kind) else None,
)
def test_f05_objects_of_an_empty_api_server_do_not_confirm_that_the_others_are_gone(
    kind: Kind[Any], built_in: list[str], own: list[str], seconds: float
) -> None:
    feed = Feed(kind, hold=60.0)
    everything = [builtin(kind, name) for name in (*built_in, *own)]
    listed(feed, "100", *everything)
    assert known(feed) == [*built_in, *own]
    for now in (0.0, seconds - 0.1):
        listed(feed, "110", *everything[: len(built_in)], now=now)
        assert set(known(feed)) == {*built_in, *own}
        assert {name for _, name in feed.held} == set(own)
    listed(feed, "110", *everything[: len(built_in)], now=seconds)
    assert known(feed) == built_in


def test_f05_the_only_object_of_a_kind_is_kept_for_the_hold_time_where_that_is_shorter() -> None:
    feed = Feed(SERVICE, hold=2.0)
    listed(feed, "100", builtin(SERVICE, "kubernetes"), service("web", 90))
    listed(feed, "110", builtin(SERVICE, "kubernetes"), now=0.0)
    assert known(feed) == ["kubernetes", "web"]
    listed(feed, "110", builtin(SERVICE, "kubernetes"), now=2.0)
    assert known(feed) == ["kubernetes"]


def test_f05_an_object_after_the_last_one_is_held_by_the_longer_time() -> None:
    """Two objects are missing: the time of an object that was missing alone is not theirs."""
    feed = Feed(SERVICE, hold=60.0)
    kubernetes = builtin(SERVICE, "kubernetes")
    listed(feed, "100", kubernetes, service("web", 90))
    listed(feed, "110", kubernetes, now=0.0)
    assert feed.process_line(line("ADDED", service("db", 111))) is not None
    listed(feed, "120", kubernetes, now=5.0)
    assert {name for _, name in feed.held} == {"web", "db"}
    listed(feed, "120", kubernetes, now=64.9)
    assert feed.held
    listed(feed, "120", kubernetes, now=65.0)
    assert known(feed) == ["kubernetes"]


def test_f05_an_object_of_the_api_server_itself_is_not_held() -> None:
    feed = Feed(SERVICE, hold=60.0)
    listed(feed, "100", builtin(SERVICE, "kubernetes"))
    listed(feed, "110")
    assert known(feed) == []


def test_f05_without_a_hold_time_every_list_is_believed() -> None:
    feed = held_feed("web", "db", hold=0.0)
    listed(feed, "110")
    assert known(feed) == []


def test_f02_restored_objects_are_held_as_listed_ones_are() -> None:
    before = held_feed("web", "db")
    feed = Feed(SERVICE, hold=60.0)
    feed.restore(before.rows.values())
    listed(feed, "110", now=0.0)
    assert known(feed) == ["web", "db"]
    listed(feed, "110", now=60.0)
    assert known(feed) == []


def test_f05_a_list_from_before_has_to_be_confirmed(feed: Feed[Service]) -> None:
    """Etcd was restored, or a proxy leads to another cluster's API server."""
    with pytest.raises(UnconfirmedList, match="went back from 100 to 40"):
        listed(feed, "40", service("web", 30))
    assert len(feed.rows) == 2
    listed(feed, "41", service("web", 30))
    assert set(feed.rows) == {("shop", "web")}
    assert feed.version == "41"


def test_pages_of_different_versions_are_an_error(feed: Feed[Service]) -> None:
    listing = Listing(feed)
    listing.begin("110")
    with pytest.raises(InvalidResponse):
        listing.begin("111")
    with pytest.raises(InvalidResponse):
        Listing(feed).begin("")


@pytest.mark.parametrize(
    ("one", "other", "is_older"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("10", "10", False),
        ("a", "b", False),
        ("", "1", False),
    ],
)
def test_versions_are_compared_where_they_are_numbers(one: str, other: str, is_older: bool) -> None:
    assert older(one, other) is is_older
