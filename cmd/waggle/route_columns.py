"""The columns of the tables of routes: advertised, received and available."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from waggle import output
from waggle.output import member
from waggle.tables import NONE, Column

TABLES = ("available", "advertised", "received")
Item: TypeAlias = Mapping[str, Any]


def _list(name: str) -> Callable[[Item], str]:
    return lambda item: ",".join(item.get(name, ()))


def _preference(item: Item) -> str:
    values = [item.get("localPreference"), item.get("med")]
    if values == [None, None]:
        return ""
    return "/".join(NONE if value is None else str(value) for value in values)


def origin_objects(item: Item) -> str:
    """Return the first origin of the route, and the number of the others."""
    origins = item.get("origins", [])
    if not origins:
        return ""
    text = output.object_name(origins[0])
    return text if len(origins) == 1 else f"{text} +{len(origins) - 1}"


def _age(item: Item) -> str:
    return output.age_of("sinceTime", datetime.now(UTC))(item)


def source(item: Item) -> str:
    """Return where a path of the Loc-RIB comes from: a peer, another instance, or objects."""
    return item.get("peer") or item.get("importedFrom") or origin_objects(item)


def _filter(item: Item) -> str:
    return item["filter"] if item.get("accepted") else ""


INSTANCE = Column("INSTANCE", member("instance"), wide=True)
_DETAILS = (
    INSTANCE,
    Column("COMMUNITIES", _list("communities"), wide=True),
    Column("LARGE", _list("largeCommunities"), wide=True),
    Column("LP/MED", _preference, wide=True),
)
COLUMNS: Mapping[str, Sequence[Column]] = {
    "advertised": (
        Column("NODE", member("node"), minor=1),
        Column("PEER", member("peer")),
        Column("PREFIX", member("prefix"), minor=7, beneath=True),
        Column("NEXT-HOP", member("nextHop", "self"), minor=6, beneath=True),
        Column("ORIGIN-OBJECT", origin_objects, minor=5, beneath=True),
        Column("COMMUNITIES", _list("communities"), minor=4, beneath=True),
        Column("LP/MED", _preference, minor=3, beneath=True),
        Column("AGE", _age, right=True, minor=2),
        INSTANCE,
        Column("AS-PATH", member("asPath"), wide=True),
        Column("LARGE", _list("largeCommunities"), wide=True),
    ),
    "received": (
        Column("NODE", member("node"), minor=1),
        Column("PEER", member("peer")),
        Column("PREFIX", member("prefix"), minor=7, beneath=True),
        Column("NEXT-HOP", member("nextHop"), minor=5, beneath=True),
        Column("AS-PATH", member("asPath"), minor=4, beneath=True),
        Column("STATUS", member("status"), minor=6, beneath=True),
        Column("FILTER", _filter, minor=3, beneath=True),
        Column(
            "OBJECT", lambda item: output.object_name(item.get("object")), minor=2, beneath=True
        ),
        *_DETAILS,
    ),
    "available": (
        Column("NODE", member("node"), minor=1),
        Column("PREFIX", member("prefix")),
        Column("NEXT-HOP", member("nextHop", "self"), minor=4, beneath=True),
        Column("FROM", source),
        Column("BEST", lambda item: "yes" if item.get("best") else "no"),
        Column("AS-PATH", member("asPath"), minor=3, beneath=True),
        Column("STATUS", member("status"), minor=2, beneath=True),
        *_DETAILS,
    ),
}
"""The columns of each table."""
