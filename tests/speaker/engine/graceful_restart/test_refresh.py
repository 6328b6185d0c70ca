"""RFC 7313: a refresh marks routes as stale, and removes them at its end."""

from __future__ import annotations

from speaker.engine.inputs import BytesReceived
from speaker.iana import IPV4_UNICAST
from tests.speaker.engine.graceful_restart.hosts import ROUTES, pair
from tests.speaker.network import INSTANCE, Host


def writes_to_end(host: Host) -> bytes:
    """All octets that were written."""
    return b"".join(b"".join(w.parts) for w in host.writes)


def test_rfc7313_4_routes_that_are_not_advertised_before_eorr_are_removed() -> None:
    _, _, b = pair()
    adj_in = next(iter(b.engine.instance(INSTANCE).established.values())).adj_in
    number = next(iter(b.ends))
    marker = b"\xff" * 16
    begin = marker + bytes.fromhex("00170500010101")
    end = marker + bytes.fromhex("00170500010201")
    b.give(BytesReceived(number, begin))
    assert adj_in.stale(IPV4_UNICAST) == 2
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    b.give(BytesReceived(number, end))
    assert b.available(IPV4_UNICAST) == {}


def test_rfc7313_4_a_refresh_without_eorr_ends_after_its_time() -> None:
    network, _, b = pair()
    number = next(iter(b.ends))
    b.give(BytesReceived(number, b"\xff" * 16 + bytes.fromhex("00170500010101")))
    network.run(29)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    network.run(2)
    assert b.available(IPV4_UNICAST) == {}
    assert b.status().established
