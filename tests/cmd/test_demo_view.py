"""The screen of the demo: every text is complete at 80 columns, and what has no room is named."""

from __future__ import annotations

import pytest

from waggle.commands.demo.view import screen
from waggle.demo_changes import ReceivedRoute, Session, Snapshot

ROUTE = ReceivedRoute(
    prefix="2001:db8:100::10/128",
    next_hop="::ffff:127.0.0.1",
    as_path="65001",
    communities=("65001:80",),
    origin_objects=("Service/shop/web",),
)
SESSION = Session(
    address="127.0.0.1",
    peer_asn=65001,
    state="Idle",
    reason="connection refused by the peer (retry in 12s)",
)
HINT = "Ctrl-C ends it."


def shown(snapshot: Snapshot, *, width: int, height: int | None = None) -> list[str]:
    return screen(snapshot, HINT, width=width, height=height).plain.splitlines()


def test_texts_are_complete_at_80_columns() -> None:
    lines = shown(Snapshot((SESSION,), (ROUTE,)), width=80)
    (line,) = [line for line in lines if line.startswith(ROUTE.prefix)]
    assert line.split() == [
        ROUTE.prefix, ROUTE.next_hop, "65001", "65001:80", "Service/shop/web",
    ]  # fmt: skip
    assert any(line.endswith(SESSION.reason) for line in lines)


@pytest.mark.parametrize("width", [100, 80, 60, 40, 32])
def test_a_narrow_screen_wraps_and_cuts_nothing(width: int) -> None:
    problem = "CiliumBGPPeerConfig/tor: spec.transport.peerPort: expected at most 65535, got 70000"
    lines = shown(Snapshot((SESSION,), (ROUTE,), (problem,)), width=width)
    assert all(len(line) <= width for line in lines)
    text = "".join("".join(lines).split())
    for whole in (
        ROUTE.prefix,
        ROUTE.next_hop,
        *ROUTE.origin_objects,
        SESSION.reason,
        problem,
        HINT,
    ):
        assert "".join(whole.split()) in text


def test_lines_that_the_screen_has_no_room_for_are_counted_before_the_hint() -> None:
    routes = tuple(
        ReceivedRoute(prefix=f"198.51.100.{number}/32", next_hop="127.0.0.1", as_path="65001")
        for number in range(40)
    )
    lines = shown(Snapshot((SESSION,), routes), width=80, height=24)
    assert len(lines) == 24
    assert lines[-2:] == ["(24 more lines; a higher terminal shows them)", HINT]


def test_texts_of_the_router_move_no_cursor() -> None:
    session = Session(address="192.0.2.1", state="Idle", reason="\x1b[2Jdown\n")
    text = screen(Snapshot((session,)), HINT, width=80).plain
    assert "\\x1b[2Jdown\\x0a" in text
    assert "\x1b" not in text
