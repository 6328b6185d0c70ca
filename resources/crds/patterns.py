"""Formats and regular expressions that make an API server accept exactly the texts the agent accepts.

The formats of Kubernetes' OpenAPI are more lenient for addresses, and RE2 has no look-around; a second
expression, in a ``not``, excludes the difference. Formats are preferred for their short messages. The
agent does not use them: its messages name the broken rule.
"""

from __future__ import annotations

from resources.crds.schema_markers import SchemaPart


def up_to(limit: int) -> str:
    """Return a regular expression (pattern) for the decimal numbers from 0 to a limit."""
    digits = str(limit)
    # Shorter numbers first, then numbers that are equal up to a smaller digit.
    alternatives = ["[0-9]"] if len(digits) > 1 else []
    alternatives += [f"[1-9][0-9]{_times(length - 1)}" for length in range(2, len(digits))]
    for i, digit in enumerate(digits):
        lowest = 1 if i == 0 and len(digits) > 1 else 0
        highest = int(digit) - 1 if i < len(digits) - 1 else int(digit)
        if highest >= lowest:
            rest = len(digits) - i - 1
            span = str(lowest) if highest == lowest else f"[{lowest}-{highest}]"
            alternatives.append(digits[:i] + span + (f"[0-9]{_times(rest)}" if rest else ""))
    return f"({'|'.join(alternatives)})"


def _times(count: int) -> str:
    return "" if count == 1 else f"{{{count}}}"


_OCTET = up_to(255)
_GROUP = "[0-9a-fA-F]{1,4}"
_IPV4 = rf"({_OCTET}\.){{3}}{_OCTET}"


def _after_first_group() -> str:
    """Return an expression for an IPv6 address without its first group (RFC 4291 section 2.2)."""
    forms = [f"(:{_GROUP}){{7}}", f"(:{_GROUP}){{5}}:{_IPV4}"]
    for before in range(1, 8):
        start = (f"(:{_GROUP}){{{before - 1}}}" if before > 1 else "") + "::"
        after = 7 - before
        forms.append(start + (f"({_GROUP}(:{_GROUP}){{0,{after - 1}}})?" if after else ""))
        if before <= 5:
            forms.append(f"{start}({_GROUP}:){{0,{5 - before}}}{_IPV4}")
    return f"({'|'.join(forms)})"


_ZONE = r"%[!-$&-.0-9;-~]{1,15}"
_LINK_LOCAL = f"^[fF][eE][89abAB][0-9a-fA-F]{_after_first_group()}{_ZONE}$"
"""Of fe80::/10, with a zone."""
# IPv4-mapped addresses in all forms, numbers with leading zeros, and groups of more than four digits;
# as an address, and before a prefix length.
_EXCLUDED = (
    rf"^[0:]*:[fF]{{4}}:({_GROUP}:{_GROUP}|[0-9.]+)(/|$)"
    rf"|^(0{{1,4}}:){{5}}[fF]{{4}}:(:|:{_GROUP}|{_GROUP}::)(/|$)"
    r"|\.0[0-9]|(^|:)0[0-9]+\.|(^|:)[0-9a-fA-F]{5,}(:|/|$)"
)
_NUMBER = up_to(4294967295)
_HALF = up_to(65535)

ADDRESS: SchemaPart = {
    "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}],
    "not": {"pattern": _EXCLUDED},
}
"""An IPv4 or IPv6 address, not an IPv4-mapped one (`resources.addresses.canonical_address`)."""
PEER_ADDRESS: SchemaPart = {
    "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}, {"pattern": _LINK_LOCAL}],
    "not": {"pattern": _EXCLUDED},
}
"""An `ADDRESS`, or a link-local IPv6 address with a zone (RFC 4007)."""
HOST_PREFIX: SchemaPart = {
    "format": "cidr",
    "pattern": r"^[0-9.]+/32$|^.*:.*/128$",
    "not": {"pattern": _EXCLUDED},
}
"""An address with the longest prefix length of its family."""
ROUTER_ID: SchemaPart = {
    "format": "ipv4",
    "pattern": f"^{_IPV4}$",
    "not": {"pattern": r"^0\.0\.0\.0$"},
}
"""A BGP identifier in its IPv4 form, not zero (RFC 6286)."""
STANDARD_COMMUNITY: SchemaPart = {"pattern": f"^({_NUMBER}|{_HALF}:{_HALF})$"}
"""One number of 32 bits, or two of 16 with a colon between them (RFC 1997)."""
LARGE_COMMUNITY: SchemaPart = {"pattern": f"^{_NUMBER}:{_NUMBER}:{_NUMBER}$"}
"""Three numbers of 32 bits with colons between them (RFC 8092)."""
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
"""The value of a label; at most 63 characters."""
