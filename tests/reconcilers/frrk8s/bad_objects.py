"""FRRConfigurations that are wrong, strange or large: for an offline node and for a running agent."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.reconcilers.frrk8s.build import configuration, neighbor, router

PREFIX = "10.1.0.0/16"
SELECTOR = {
    "matchLabels": {"bgp": "yes"},
    "matchExpressions": [{"key": "bgp", "operator": "In", "values": ["yes"]}],
}
FIRST: dict[str, Any] = {
    "address": "203.0.113.9",
    "asn": 64950,
    "localASN": 64800,
    "allowAsIn": "origin",
    "sourceaddress": "203.0.113.1",
    "port": 179,
    "passwordSecret": {"name": "s", "namespace": "frr-k8s-system"},
    "holdTime": "90s",
    "keepaliveTime": "30s",
    "connectTime": "5s",
    "ebgpMultiHop": True,
    "bfdProfile": "fast",
    "enableGracefulRestart": True,
    "disableMP": False,
    "dualStackAddressFamily": True,
    "addressFamilies": ["unicast"],
    "toAdvertise": {
        "allowed": {"mode": "filtered", "prefixes": [PREFIX]},
        "withLocalPref": [{"localPref": 1, "prefixes": [PREFIX]}],
        "withCommunity": [{"community": "1:1", "prefixes": [PREFIX]}],
        "nextHop": {"ipv4": "192.0.2.1", "ipv6": "2001:db8::1"},
    },
    "toReceive": {
        "allowed": {"mode": "filtered", "prefixes": [{"prefix": "10.0.0.0/8", "ge": 9, "le": 24}]}
    },
}
SECOND = {"interface": "eth7", "dynamicASN": "external"}
THIRD = {"address": "203.0.113.10", "asn": 64951, "password": "pass-word"}
WHOLE: dict[str, Any] = {
    "nodeSelector": SELECTOR,
    "raw": {"rawConfig": "", "priority": 0},
    "bgp": {
        "bfdProfiles": [
            {
                "name": "fast",
                "receiveInterval": 100,
                "transmitInterval": 100,
                "detectMultiplier": 3,
                "echoInterval": 50,
                "echoMode": False,
                "passiveMode": False,
                "minimumTtl": 254,
            }
        ],
        "routers": [
            {
                "asn": 64900,
                "id": "192.0.2.1",
                "vrf": "red",
                "prefixes": [PREFIX],
                "imports": [{"vrf": "blue"}],
                "neighbors": [FIRST, SECOND, THIRD],
                "evpn": {
                    "advertiseVNIs": "All",
                    "advertiseSVI": False,
                    "l2vnis": [{"vni": 7, "rd": "1:1", "importRTs": ["1:1"], "exportRTs": ["1:1"]}],
                    "l3vni": {
                        "vni": 8,
                        "rd": "1:2",
                        "importRTs": ["1:1"],
                        "exportRTs": ["1:1"],
                        "advertisePrefixes": ["unicast"],
                    },
                },
            }
        ],
    },
}
"""A specification with all fields. Its router is of a VRF of its own: where a value happens to be
right, the routers of others stay as they are."""
STRANGE: tuple[Any, ...] = (
    *(None, [], [None], {}, True, 7, -1, 1 << 32, 1e3, 1.5, "1", ""),
    "x" * 1_048_576,
)
TEXTS = (
    *("a\nb", "a\rb", "a b", "a\x00b", "a\x1b[31mb", "\u202eabc", "a\u200fb"),
    *("x" * 10_240, " ", "%", "a/b"),
)
QUOTED = ('a"b', "a'b")
"""Names that an interface, a VRF and a BFD profile may have."""


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield the path of every field and list element."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths(item, (*path, key))


def names(path: tuple[Any, ...]) -> str:
    """Return a path without indices."""
    return ".".join(part for part in path if isinstance(part, str))


def all_fields(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each field of a schema, without indices."""
    for name, part in schema.get("properties", {}).items():
        at = f"{path}.{name}".removeprefix(".")
        yield at
        yield from all_fields(part, at)
        yield from all_fields(part.get("items", {}), at)


def replaced(path: tuple[Any, ...], by: Any, name: str = "bad") -> dict[str, Any]:  # noqa: ANN401
    """Return `WHOLE` with one part exchanged."""
    spec = copy.deepcopy(WHOLE)
    target: Any = spec
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = by
    return configuration(name, spec)


class Bad(NamedTuple):
    """One object."""

    id: str
    spec: Any
    field: str | None
    """The end of the path that its problem has; None where it is right."""


def of_router(*neighbors: Any, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Spell a specification of one router, of a VRF of its own."""
    return {"bgp": {"routers": [router(*neighbors, **{"vrf": "red", **fields})]}}


def _texts() -> Iterator[Bad]:
    community = {"prefixes": [PREFIX]}
    for i, text in enumerate((*TEXTS, *QUOTED)):
        quoted = text in QUOTED
        found: list[tuple[str, Any, str | None]] = [
            (
                "interface",
                of_router({"asn": 1, "interface": text}),
                None if quoted else "interface",
            ),
            ("vrf", of_router(vrf=text), None if quoted else "routers[0].vrf"),
            ("import", of_router(imports=[{"vrf": f"{text}2"}]), "imports[0].vrf"),
            (
                "source",
                of_router(neighbor(sourceaddress=text)),
                None if quoted else "sourceaddress",
            ),
            ("secret", of_router(neighbor(passwordSecret={"name": text})), "passwordSecret.name"),
            ("profile", of_router(neighbor(bfdProfile=text)), "bfdProfile"),
            ("address", of_router(neighbor(address=text)), "address"),
            ("id", of_router(id=text), "id"),
            ("prefix", of_router(prefixes=[text]), "prefixes[0]"),
            ("mode", of_router(neighbor(toReceive={"allowed": {"mode": text}})), "mode"),
            ("raw", {"raw": {"rawConfig": text}}, "raw.rawConfig"),
            (
                "community",
                of_router(
                    neighbor(
                        toAdvertise={
                            "allowed": {"prefixes": [PREFIX]},
                            "withCommunity": [{"community": text, **community}],
                        }
                    ),
                    prefixes=[PREFIX],
                ),
                "withCommunity[0].community",
            ),
        ]
        yield from (Bad(f"{name}-{i}", spec, field) for name, spec, field in found)
    for text in ("a\x00b", "x" * 10_240):
        yield Bad("password", of_router(neighbor(password=text)), "password")
    yield Bad("empty password", of_router(neighbor(password="")), None)


def _durations() -> Iterator[Bad]:
    for field, text in (
        *(("holdTime", text) for text in ("-1s", "9999999h", "", "1d", "2s", "1", "s", "1e3s")),
        *(("keepaliveTime", text) for text in ("-1s", "9999999h", "", "1d")),
        *(
            ("connectTime", text)
            for text in ("0s", "1500ms", "65536s", "-1s", "9999999h", "", "1d")
        ),
    ):
        other = {"holdTime": {"keepaliveTime": "0s"}, "keepaliveTime": {"holdTime": "90s"}}
        spec = of_router(neighbor(**{field: text, **other.get(field, {})}))
        yield Bad(f"{field} {text}", spec, field)
    spec = of_router(neighbor(holdTime="1h1m1.5s", keepaliveTime="0s"))
    yield Bad("holdTime 1h1m1.5s", spec, None)


def _addresses() -> Iterator[Bad]:
    for text in (
        *("fe80::1%eth0", "::ffff:192.0.2.1", "0.0.0.0", "::", "224.0.0.1", "ff02::1"),
        *("255.255.255.255", "192.0.2.1/24", "010.0.0.1", "192.0.2.1 "),
    ):
        hop = {"allowed": {"prefixes": [PREFIX]}, "nextHop": {"ipv4": text}}
        yield Bad(f"address {text}", of_router(neighbor(address=text)), "address")
        yield Bad(f"source {text}", of_router(neighbor(sourceaddress=text)), "sourceaddress")
        spec = of_router(neighbor(toAdvertise=hop), prefixes=[PREFIX])
        yield Bad(f"next hop {text}", spec, "nextHop.ipv4")
    yield Bad("id 0.0.0.0", of_router(id="0.0.0.0"), "routers[0].id")


def _prefixes() -> Iterator[Bad]:
    for text in ("0.0.0.0/0", "::/0", "10.1.2.3/8", "2001:db8::1/32"):
        allowed = {"prefixes": [text]}
        both = neighbor(dualStackAddressFamily=True, toAdvertise={"allowed": allowed})
        yield Bad(f"prefix {text}", of_router(both, prefixes=[text]), None)
        accept = {"allowed": {"prefixes": [{"prefix": text, "le": 32}]}}
        yield Bad(f"accept {text} le 32", of_router(neighbor(toReceive=accept)), None)
    for text in ("10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "/8", "0.0.0.0/0 le 32"):
        yield Bad(f"prefix {text}", of_router(prefixes=[text]), "prefixes[0]")
    for fields in ({"le": 7}, {"ge": 7}, {"ge": 25, "le": 24}, {"le": 33}):
        accept = {"allowed": {"prefixes": [{"prefix": "10.0.0.0/8", **fields}]}}
        yield Bad(f"accept {fields}", of_router(neighbor(toReceive=accept)), next(iter(fields)))


def _selectors() -> Iterator[Bad]:
    one = {"operator": "In", "values": ["x"]}
    selectors: tuple[Any, ...] = (
        {"matchLabels": {"": "x"}},
        {"matchLabels": {"a": "@"}},
        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a b", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "", **one}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        ["a"],
    )
    for i, selector in enumerate(selectors):
        yield Bad(f"selector {i}", {"nodeSelector": selector, **of_router()}, "nodeSelector")
    values = [f"v{i}" for i in range(1000)]
    for found in ([*values, "yes"], values):
        expression = {"key": "bgp", "operator": "In", "values": found}
        spec = {"nodeSelector": {"matchExpressions": [expression]}, **of_router()}
        yield Bad(f"selector of {len(found)} values", spec, None)


def _others() -> Iterator[Bad]:
    values: tuple[Any, ...] = ([], 7, -1, 1.5, "1", True, "x" * 1_048_576)
    for value in values:
        yield Bad(f"spec {str(value)[:9]}", value, "spec")
    yield Bad("spec null", None, None)
    many = [router(vrf=f"v{i}") for i in range(51)]
    yield Bad("50 routers", {"bgp": {"routers": many[:50]}}, None)
    yield Bad("51 routers", {"bgp": {"routers": many}}, "spec.bgp.routers")
    text = "router bgp 1\n neighbor 203.0.113.77 remote-as 2\n"
    yield Bad("raw configuration like ours", {"raw": {"rawConfig": text}}, "spec.raw.rawConfig")


OWN = Bad(
    "address of the node",
    of_router(neighbor(address="192.0.2.1"), vrf="default"),
    "routers[0].neighbors[0].address",
)
"""Of which the node alone knows; `keep` has an earlier state in force where other objects are wrong."""
BAD = (
    *(*_texts(), *_durations(), *_addresses(), *_prefixes(), *_selectors(), *_others()),
    OWN,
)
