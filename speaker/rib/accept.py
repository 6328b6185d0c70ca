"""Which received prefixes may enter the Loc-RIB: an import rule, compiled once per peer.

Pure. Matching works on wire bytes; text is read only when a rule is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from speaker.api import Import, InvalidConfig, PrefixRule
from speaker.nlri import BITS, Family, prefix_to_wire

Accept = Callable[[Family, bytes], bool]
"""Whether a prefix is accepted."""


def compile_import(peer: str, rule: Import) -> Accept | None:
    """Return what decides about each prefix, or None where everything is accepted.

    Raises `InvalidConfig` for a rule that is no prefix or whose lengths cannot be.
    """
    if rule == "all":
        return None
    if rule == "none":
        return _nothing
    assert not isinstance(rule, str)  # noqa: S101  the two words are dealt with
    rules = [_compile(peer, one) for one in rule]

    def accept(family: Family, nlri: bytes) -> bool:
        return any(_covers(one, family, nlri) for one in rules)

    return accept


_Compiled = tuple[int, int, int, int, int]
"""AFI, the prefix's bits as a number, its length, and the lengths covered, from and to."""


def _compile(peer: str, rule: PrefixRule) -> _Compiled:
    try:
        family, wire = prefix_to_wire(rule.prefix)
    except ValueError as error:
        raise InvalidConfig("peer", peer, "import", str(error)) from None
    length = wire[0]
    size = BITS[family.afi]  # type: ignore[index]  # an Afi is its number
    low = length if rule.ge is None else rule.ge
    longest = length if rule.ge is None else size
    high = longest if rule.le is None else rule.le
    if not length <= low <= high <= size:
        raise InvalidConfig(
            "peer", peer, "import", f"{rule.prefix}: lengths {low} to {high} are not within it"
        )
    return (family.afi, _bits(wire, length), length, low, high)


def _bits(wire: bytes, length: int) -> int:
    octets = wire[1 : 1 + ((length + 7) >> 3)]
    return int.from_bytes(octets, "big") >> (len(octets) * 8 - length)


def _covers(rule: _Compiled, family: Family, nlri: bytes) -> bool:
    afi, bits, length, low, high = rule
    return afi == family.afi and low <= nlri[0] <= high and _bits(nlri, length) == bits


def _nothing(family: Family, nlri: bytes) -> bool:
    del family, nlri
    return False


def accepts_nothing(accept: Accept | None) -> bool:
    """Tell whether a compiled rule accepts no prefix at all."""
    return accept is _nothing


__all__: Sequence[str] = ["Accept", "accepts_nothing", "compile_import"]
