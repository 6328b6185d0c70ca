"""Conversions of drafts of BGPPolicy, and of BGPPolicy itself to Cilium's API.

`draft` reads a draft of any form, `bgppolicy` reads and writes BGPPolicies, `to_cilium` writes Cilium's
objects; between them is a `bgppolicy.Description`. A field without an equivalent is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from reconcilers.antrea.convert.bgppolicy import Description, read_policy, to_bgppolicy
from reconcilers.antrea.convert.draft import is_draft, read_draft
from reconcilers.antrea.convert.to_cilium import to_cilium
from reconcilers.dialect import Conversion, Notes
from resources.antrea.kinds import BGP_POLICY

JsonObjects: TypeAlias = list[dict[str, Any]]

DRAFTS: Final = "BGPPolicy of antrea.io"


def _of_draft(
    write: Callable[[Description, Notes], JsonObjects],
) -> Callable[[Mapping[str, Any], Notes], JsonObjects | None]:
    def convert(value: Mapping[str, Any], notes: Notes) -> JsonObjects | None:
        return write(read_draft(value, notes), notes) if is_draft(value) else None

    return convert


def _policies(rows: Mapping[str, Sequence[Any]], notes: Notes) -> JsonObjects:
    return [o for row in rows[BGP_POLICY.name] for o in to_cilium(read_policy(row), notes)]


TO_BGP_POLICY: Final = Conversion(drafts=DRAFTS, draft=_of_draft(to_bgppolicy))
TO_CILIUM: Final = Conversion(
    target="cilium",
    kinds=(BGP_POLICY,),
    rows=_policies,
    drafts=DRAFTS,
    draft=_of_draft(to_cilium),
)
"""To Cilium's objects of v2."""
