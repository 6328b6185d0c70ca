"""The corpus: small files of octets, the seeds of the harness and a test each.

``python -m tests.speaker.fuzz.seeds`` writes the seeds anew: messages that we build ourselves, whole,
cut and joined, in the shapes that other implementations' test suites have, and programs that bring
a session into each state and do something to it. What the harness has found is beside them, under the
name of what went wrong, and is never written by this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speaker.attribute import encode_attribute
from speaker.capability import AddPath, Fqdn, LongLivedGracefulRestart, SoftwareVersion, Unknown
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.message import KEEPALIVE, Open, frame_message
from tests.speaker.hostile import (
    AS_PATH,
    BASIC,
    HOP_6,
    MANDATORY,
    NEXT_HOP,
    ORIGIN,
    PREFIX,
    PREFIX_6,
    PROFILES,
    REACH,
    RICH,
    SEEDS,
    STATES,
    UNREACH,
    update,
)

FOLDER = Path(__file__).parent / "corpus"
OCTETS, SESSIONS = FOLDER / "octets", FOLDER / "sessions"


def _open(parameters: bytes) -> bytes:
    return frame_message(1, b"\4\xfd\xea\0\x5a\0\0\xfd\xea" + parameters)


def shapes() -> Iterator[tuple[str, bytes]]:
    """Yield messages by name; some are well-formed, most are not."""
    yield from SEEDS.items()
    # OPEN: optional parameters that end exactly, too early, in both forms.
    yield "open-no-parameters", _open(b"\0")
    yield "open-ends-at-length", _open(b"\x02")
    yield "open-extended-ends-at-word", _open(b"\xff\xff\0")
    yield "open-extended", _open(b"\xff\xff\0\x09\x02\0\6\1\4\0\1\0\1")
    yield "open-parameter-255-short", _open(b"\x02\xff\xff")
    yield "open-as4-two-octets", _open(b"\x06\2\4\x41\2\0\1")
    yield "open-capability-cut", _open(b"\x04\2\2\1\4")
    yield (
        "open-names",
        Open(
            asn=65002,
            hold_time=90,
            router_id=1,
            capabilities=(
                Fqdn("", "", b"\xff\x1b[2J"),
                SoftwareVersion("", b"\0"),
                Unknown(128, b""),
                LongLivedGracefulRestart(
                    ((IPV4_UNICAST, True, 1), (IPV6_UNICAST, False, 2**24 - 1))
                ),
                AddPath(((IPV4_UNICAST, 1), (IPV6_UNICAST, 2))),
            ),
        ).encode(),
    )
    # UPDATE: missing and duplicated fields, wrong lengths.
    yield "update-no-attributes", update(b"", PREFIX)
    yield "update-unknown-only", update(encode_attribute(0xC0, 99, b"x"), PREFIX)
    yield (
        "update-as4-path-first",
        update(encode_attribute(0xC0, 17, b"\2\1\0\1\0\0") + MANDATORY, PREFIX),
    )
    yield "update-med-twice", update(MANDATORY + encode_attribute(0x80, 4, bytes(4)) * 2, PREFIX)
    yield "update-reach-twice", update(REACH + MANDATORY + REACH)
    yield "update-unreach-and-prefix", update(UNREACH, PREFIX)
    yield "update-end-of-rib-with-origin", update(ORIGIN + encode_attribute(0x80, 15, b"\0\2\1"))
    yield (
        "update-hop-empty",
        update(ORIGIN + AS_PATH + encode_attribute(0x80, 14, b"\0\2\1\0\0" + PREFIX_6)),
    )
    yield (
        "update-hop-too-long",
        update(ORIGIN + AS_PATH + encode_attribute(0x80, 14, b"\0\2\1\xff" + HOP_6 + b"\0")),
    )
    yield (
        "update-two-hops",
        update(
            ORIGIN
            + AS_PATH
            + encode_attribute(
                0x80, 14, b"\0\2\1\x20" + HOP_6 + b"\xfe\x80" + bytes(14) + b"\0" + PREFIX_6
            )
        ),
    )
    yield (
        "update-vpn",
        update(ORIGIN + AS_PATH + encode_attribute(0x80, 14, b"\0\1\x80\x0c" + bytes(13))),
    )
    yield "update-flowspec", update(encode_attribute(0x80, 15, b"\0\1\x85\0") + MANDATORY, PREFIX)
    yield "update-prefix-33", update(MANDATORY, b"\x21\x0a\0\0\0\0")
    yield "update-prefix-cut", update(MANDATORY, b"\x18\x0a")
    yield (
        "update-set",
        update(ORIGIN + encode_attribute(0x40, 2, b"\2\1\0\0\xfd\xea\1\2" + bytes(8)) + NEXT_HOP),
    )
    yield (
        "update-confederation",
        update(
            ORIGIN + encode_attribute(0x40, 2, b"\3\1\0\0\xfd\xea\4\1\0\0\0\1") + NEXT_HOP, PREFIX
        ),
    )
    yield (
        "update-segment-empty",
        update(ORIGIN + encode_attribute(0x40, 2, b"\2\0") + NEXT_HOP, PREFIX),
    )
    for kind, value in (
        (7, bytes(6)),
        (18, bytes(8)),
        (22, bytes(4)),
        (23, b"\0\1\0\xff"),
        (25, bytes(20)),
        (26, b"\1\0\2"),
        (28, b""),
        (29, b"\0\1\0\2"),
        (35, bytes(4)),
        (40, bytes(7)),
        (255, b"\xff" * 9),
    ):
        octets = encode_attribute(0x80 if kind in (26, 29) else 0xC0, kind, value)
        yield f"update-attribute-{kind}", update(MANDATORY + octets, PREFIX)
    yield "update-overrun", update(MANDATORY + b"\xc0\x08\xff", PREFIX)
    yield "update-extended-length-short", update(MANDATORY + b"\xd0\x08\0", PREFIX)
    # The small ones.
    yield "notification-empty", frame_message(3, b"")
    yield "notification-text", frame_message(3, b"\6\4\x09\x1b[31m\0\r\n\xff")
    yield "refresh-short", frame_message(5, b"\0\1")
    yield "refresh-orf", frame_message(5, b"\0\1\0\1\1\x80\xff\xff")
    yield "capability-message", frame_message(6, b"\0\1\4\0\1\0\1")
    yield "length-0", b"\xff" * 16 + b"\0\0\2"
    yield "length-65535", b"\xff" * 16 + b"\xff\xff\2"
    yield "many", KEEPALIVE * 3 + SEEDS["update"] + SEEDS["update-withdraw"]


def programs() -> Iterator[tuple[str, bytes]]:
    """Yield acts by name; see `tests.speaker.fuzz.targets`."""
    seeds = list(SEEDS)
    send, changed, cut, slowly = 0x20, 0x40, 0x60, 0x80
    for choice, profile in enumerate(PROFILES):
        capabilities = 0x80 if profile == "rich" else 0
        for number, state in enumerate(STATES):
            head = bytes(((0x80 if state == "Connect" else 0) | choice, number | capabilities))
            yield f"{profile}-{state}-everything", head + bytes(send + n for n in range(len(seeds)))
        head = bytes((choice, STATES.index("Established") | capabilities))
        rich = seeds.index("update-rich")
        yield f"{profile}-changed", head + bytes((changed + rich, 60, 255, changed + rich, 80, 0))
        yield f"{profile}-cut", head + bytes((cut + rich, 50, send + rich, 0xE4, 0xE3, 9, 0xE5))
        yield f"{profile}-slowly", head + bytes(slowly + n for n in (2, 4, 11))
        yield f"{profile}-queue", head + bytes((0xE9, 50, 0xE3, 200, send + 2, 0xE9, 255))
        yield (
            f"{profile}-commands",
            head + bytes((0xEA, 1, 2, 0xEC, 0xE5, send, send + 2, 0xED, 0xEE)),
        )
    # Two connections that cross, in both orders.
    for first in (0, 1):
        open_, alive, turn = send + seeds.index("open"), send + 2, 0xFF
        acts = bytes(
            (0xE5, 0xE7, open_, turn, first, open_, alive, turn, 1 - first, alive, 0xE1, 9)
        )
        yield f"collision-{first}", bytes((0x80, STATES.index("Connect"))) + acts
    restart = bytes((1, 0x80 | STATES.index("Established"), send + 3, 0xE4, 0xE5))
    yield "restart", restart + bytes((send + 1, send + 2, send + 7, 0xE3, 100))
    assert RICH[: len(BASIC)] == BASIC


def entries() -> dict[Path, bytes]:
    """Return every seed with its file."""
    found = {OCTETS / name: b"\0" + octets for name, octets in shapes()}
    found.update(
        (OCTETS / f"{name}-{context}", bytes((context,)) + SEEDS[name])
        for name in ("update-rich", "update-path-ids", "open-rich")
        for context in range(1, 5)
    )
    found.update((SESSIONS / name.lower(), octets) for name, octets in programs())
    return found


def main() -> None:
    """Write the seeds."""
    for path, octets in entries().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(octets)


if __name__ == "__main__":
    main()
