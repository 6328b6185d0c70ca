"""What is accepted from a neighbour."""

from __future__ import annotations

from reconcilers.frrk8s.one_object.findings import Findings
from reconcilers.frrk8s.unit import NeighborKey, Unit
from reconcilers.frrk8s.values import prefix
from reconcilers.model import PrefixRule
from reconcilers.sliced_work import Pieces, Slices
from resources.errors import checked_items
from resources.frrk8s.neighbor import Neighbor, PrefixSelector
from speaker.nlri import IPV4_UNICAST, prefix_to_text


def accepted_prefixes(
    unit: Unit, spec: Neighbor, key: NeighborKey, path: str, findings: Findings, pieces: Pieces
) -> Slices[frozenset[PrefixRule] | None]:
    """Return the rules of prefixes that are accepted from a neighbour; None accepts all."""
    allowed = spec.to_receive.allowed
    if allowed.mode == "all":
        return None
    rules = set()
    where = f"{path}.toReceive.allowed.prefixes"
    for i, selector in checked_items(allowed.prefixes, where, findings.errors):
        try:
            rules.add(_rule(unit, selector))
        except _InvalidSelectorError as error:
            findings.error(f"{where}[{i}].{error.field}", f"{key}: {error}")
        if pieces.fill_slice():
            yield
    return frozenset(rules)


def _rule(unit: Unit, selector: PrefixSelector) -> PrefixRule:
    try:
        family, nlri = prefix(selector.prefix)
    except ValueError as error:
        raise _InvalidSelectorError("prefix", str(error)) from None
    longest = 32 if family == IPV4_UNICAST else 128
    ge, le = selector.ge, selector.le
    for name, length in (("ge", ge), ("le", le)):
        if length is not None and not nlri[0] <= length <= longest:
            text = f"{name} {length} of {selector.prefix} is not from {nlri[0]} to {longest}"
            raise _InvalidSelectorError(name, text)
    if ge is not None and le is not None and ge > le:
        raise _InvalidSelectorError("ge", f"ge {ge} of {selector.prefix} is above le {le}")
    return PrefixRule(prefix_to_text(family, nlri), ge, le, unit.ref)


class _InvalidSelectorError(Exception):
    """A selector of received prefixes that is invalid."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
