"""Rules of prefixes: a prefix, and the lengths of more specific ones. Pure."""

from __future__ import annotations

from reconcilers.frrk8s.field_values import prefix
from reconcilers.model import ObjectRef, PrefixRule
from resources.frrk8s.neighbor import PrefixSelector
from speaker.nlri import IPV4_UNICAST, prefix_to_text


class InvalidSelector(Exception):  # noqa: N818  the name is the condition
    """A selector of prefixes that is invalid, with its field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def prefix_rule(selector: PrefixSelector, origin: ObjectRef | None) -> PrefixRule:
    """Return the rule of an FRRConfiguration's prefix selector. Raises `InvalidSelector`."""
    try:
        family, nlri = prefix(selector.prefix)
    except ValueError as error:
        raise InvalidSelector("prefix", str(error)) from None
    longest = 32 if family == IPV4_UNICAST else 128
    ge, le = selector.ge, selector.le
    for name, length in (("ge", ge), ("le", le)):
        if length is not None and not nlri[0] <= length <= longest:
            text = f"{name} {length} of {selector.prefix} is not from {nlri[0]} to {longest}"
            raise InvalidSelector(name, text)
    if ge is not None and le is not None and ge > le:
        raise InvalidSelector("ge", f"ge {ge} of {selector.prefix} is above le {le}")
    return PrefixRule(prefix_to_text(family, nlri), ge, le, origin)
