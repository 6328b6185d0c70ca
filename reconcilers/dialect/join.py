"""The default join rule for a prefix that several objects contribute, independent of any order.

Communities are united, the highest local preference and the lowest MED count, and one INCOMPLETE is
enough.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.model import Attributes


def united(all_of: Iterable[Attributes]) -> Attributes:
    """Join the attributes of contributions to one prefix by the default rule; at least one is given."""
    given = list(all_of)
    if len(given) == 1:
        return given[0]
    preferences = [a.local_preference for a in given if a.local_preference is not None]
    meds = [a.med for a in given if a.med is not None]
    next_hops = sorted({a.next_hop for a in given if a.next_hop is not None})
    return Attributes(
        communities=tuple(sorted({c for a in given for c in a.communities})),
        large_communities=tuple(sorted({c for a in given for c in a.large_communities})),
        local_preference=max(preferences, default=None),
        med=min(meds, default=None),
        next_hop=next_hops[0] if next_hops else None,
        incomplete=any(a.incomplete for a in given),
    )
