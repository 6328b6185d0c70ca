"""The screen of the demo: sessions and routes of the router, as tables.

Pure functions of a snapshot. Texts come from the router: what is not printable is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from rich.text import Text

from cells.safe_text import escape
from resources.enumeration import counted
from waggle.demo_changes import Snapshot
from waggle.output import row
from waggle.sessions import state_style
from waggle.tables import Column, Layout, fitted, wrap

SESSIONS: Final = (
    Column("PEER", lambda session: session.address),
    Column("AS", lambda session: str(session.peer_asn or ""), right=True),
    Column("STATE", lambda session: session.state, style=state_style),
    Column("REASON", lambda session: session.reason, minor=1, beneath=True),
)
ROUTES: Final = (
    Column("PREFIX", lambda route: route.prefix),
    Column("NEXT-HOP", lambda route: route.next_hop, minor=3, beneath=True),
    Column("AS-PATH", lambda route: route.as_path),
    Column(
        "COMMUNITIES",
        lambda route: " ".join((*route.communities, *route.large_communities)),
        minor=2,
        beneath=True,
    ),
    Column("ORIGIN-OBJECT", lambda route: " ".join(route.origin_objects), minor=1, beneath=True),
)


def screen(snapshot: Snapshot, hint: str, *, width: int, height: int | None = None) -> Text:
    """Return both tables, the problems of the manifests, and a hint, for a terminal.

    Texts that are too long for ``width`` are wrapped. Lines beyond ``height`` are hidden, and the
    last line but the hint has their number.
    """
    lines = [
        *_titled("Sessions of the router", SESSIONS, snapshot.sessions, width),
        "",
        *_titled("Routes received by the router", ROUTES, snapshot.routes, width),
        "",
    ]
    lines += [
        _ansi("31", part)
        for problem in snapshot.problems
        for part in wrap(f"! {escape(problem)}", width)
    ]
    last = [_ansi("2", part) for part in wrap(hint, width)] if hint else []
    if height is not None and len(lines) + len(last) > height:
        room = max(0, height - len(last) - 1)
        more = sum(1 for line in lines[room:] if line)
        note = f"({counted(more, 'more line')}; a higher terminal shows them)"
        lines = [*lines[:room], _ansi("2", note[:width])]
    return Text.from_ansi("\n".join([*lines, *last]), no_wrap=True, overflow="crop")


def _titled(
    title: str, columns: Sequence[Column], items: Iterable[object], width: int
) -> list[str]:
    cells = [row(columns, item) for item in items]
    groups = fitted(columns, [cells], Layout(color=True), width=width, complete=True)
    return [_ansi("1", title[:width]), *chain.from_iterable(groups)]


def _ansi(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
