"""Next hops, import policies and passwords of the intent reach the speaker, without a reset."""

from __future__ import annotations

import msgspec

from reconcilers.model import (
    FieldRef,
    NextHop,
    ObjectRef,
    PrefixRule,
)
from resources.kind import Kind
from resources.meta import Resource
from resources.secret_value import SecretValue
from speaker.api import BfdProfile, PeerConfig, RouteAttributes
from speaker.api import BfdProfile as SpeakerProfile
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows, changed


def config(rows: Rows) -> PeerConfig:
    found = rows.speaker.peer_config("i", "p")
    assert isinstance(found, PeerConfig)
    return found


def test_a_next_hop_of_either_family_is_advertised_and_its_change_resets_nothing() -> None:
    rows = Rows()
    rows.route("10.1.0.0/24", "2001:db8:1::/48")
    rows.apply([INSTANCE], [PEER])
    router = rows.router()
    for four, six in (("192.0.2.77", "2001:db8::77"), ("192.0.2.78", "2001:db8::77")):
        router.sent()
        rows.speaker.host.sent()
        hops = tuple(
            NextHop(family, address, configured=True)
            for family, address in ((IPV4_UNICAST, four), (IPV6_UNICAST, six))
        )
        rows.apply([INSTANCE], [changed(next_hops=hops)])
        assert router.received(IPV4_UNICAST)["10.1.0.0/24"].next_hop == four
        assert router.received(IPV6_UNICAST)["2001:db8:1::/48"].next_hop == six
        # The router sends neither a NOTIFICATION nor a ROUTE-REFRESH.
        assert router.sent() == b""
    assert bytes((48, 0x20, 0x01)) not in rows.speaker.host.sent()
    assert router.status().flaps == 0


def test_what_is_accepted_and_never_accepted_changes_without_a_reset_or_a_refresh() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [changed(accept=None)])
    router = rows.router()
    prefixes = ("10.96.0.0/12", "10.96.1.0/24", "10.1.0.0/24", "2001:db8:1::/48")
    router.routes({prefix: RouteAttributes() for prefix in prefixes})
    rows.network.run(0.5)
    blocked = (PrefixRule("10.96.0.0/12", le=32, label="AlwaysBlock"),)
    for accept, reject, accepted in (
        (None, (), set(prefixes)),
        (None, blocked, {"10.1.0.0/24", "2001:db8:1::/48"}),
        ((PrefixRule("10.0.0.0/8", le=24),), blocked, {"10.1.0.0/24"}),
        ((PrefixRule("10.0.0.0/8", le=24),), (), {"10.96.0.0/12", "10.96.1.0/24", "10.1.0.0/24"}),
        ((), blocked, set()),
        ((), (), set()),
        (None, (), set(prefixes)),
    ):
        rows.speaker.host.sent()
        rows.apply([INSTANCE], [changed(accept=accept, reject=reject)])
        rows.network.run(1)
        held = set()
        for family in (IPV4_UNICAST, IPV6_UNICAST):
            held |= {
                view.prefix for view in rows.speaker.host.engine.views.routes_available("i", family)
            }
        assert held == accepted
        assert rows.speaker.host.sent() == b""
    assert router.status().flaps == 0


def test_the_object_of_a_selector_is_no_part_of_the_policy() -> None:
    rows = Rows()
    rules = [PrefixRule("10.0.0.0/8", le=24, origin=ObjectRef("C", "ns", name)) for name in "ab"]
    rows.apply([INSTANCE], [changed(accept=tuple(rules))])
    rows.speaker.take()
    rows.apply([INSTANCE], [changed(accept=(rules[1],))])
    assert rows.speaker.take() == []


def test_a_bfd_profile_arrives_at_the_speaker_and_its_change_resets_nothing() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    router = rows.router()
    rows.apply([INSTANCE], [changed(bfd=BfdProfile(200, 250, 5, 60, True, True, 250, "fast"))])
    assert config(rows).bfd == SpeakerProfile(200, 250, 5, 60, True, True, 250, "fast")
    rows.apply([INSTANCE], [PEER])
    assert config(rows).bfd is None
    assert router.status().flaps == 0


class Link(Resource, frozen=True, kw_only=True):
    """An object with a password in a field."""

    password: SecretValue | None = None


LINK = Kind(
    "Link",
    Link,
    group="example.org",
    versions=("v1",),
    plural="links",
    namespaced=True,
    table="links",
)
NAME = {"name": "l", "namespace": "ns"}


def test_a_password_in_a_field_follows_its_object() -> None:
    rows = Rows([LINK])
    ref = FieldRef(ObjectRef("Link", "ns", "l"), "password")
    rows.apply([INSTANCE], [changed(password=ref)])
    assert config(rows).disabled_reason == "no password of Link/ns/l"
    for text in ("one", "two"):
        rows.put(LINK, {"metadata": NAME, "password": text})
        # The row of the peer names the field, and is the same.
        rows.run()
        known = config(rows).password
        assert known is not None
        assert (known.reveal(), config(rows).disabled_reason) == (text.encode(), None)
    rows.put(LINK, {"metadata": NAME})
    rows.run()
    assert config(rows).disabled_reason == "no password of Link/ns/l"


def test_a_withheld_password_keeps_the_session_down_until_it_is_known() -> None:
    rows = Rows([LINK])
    with rows.db.write(rows.resources.of(LINK)) as txn:
        row = LINK.decode({"metadata": NAME})
        withheld = msgspec.structs.replace(row, password=SecretValue.withheld())
        rows.resources.of(LINK).upsert(txn, withheld)
    ref = FieldRef(ObjectRef("Link", "ns", "l"), "password")
    rows.apply([INSTANCE], [changed(password=ref)])
    text = "password of Link/ns/l: not known until the API server can be read"
    assert config(rows).disabled_reason == text
    assert config(rows).password is None
