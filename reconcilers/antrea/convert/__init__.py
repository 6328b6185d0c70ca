"""Conversions of drafts of BGPPolicy, and of BGPPolicy itself to Cilium's API.

`draft` reads a draft of any form, `bgppolicy` reads and writes BGPPolicies, `to_cilium` writes Cilium's
objects; between them is a `bgppolicy.Description`. A field without an equivalent is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from reconcilers.antrea.convert.bgppolicy import Description, Notes, read_policy, to_bgppolicy
from reconcilers.antrea.convert.draft import is_draft, read_draft
from reconcilers.antrea.convert.to_cilium import to_cilium
from reconcilers.dialect import Converter, DraftConverter
from reconcilers.model import Problem
from resources.antrea.kinds import BGP_POLICY

JsonObjects: TypeAlias = list[dict[str, Any]]

CILIUM: Final = "cilium"
NAMES: Final = ("BGPPolicy of antrea.io",)


def _of_draft(
    write: Callable[[Description, Notes], JsonObjects],
) -> Callable[[Mapping[str, Any]], tuple[JsonObjects, list[Problem]] | None]:
    def convert(value: Mapping[str, Any]) -> tuple[JsonObjects, list[Problem]] | None:
        if not is_draft(value):
            return None
        notes = Notes()
        return write(read_draft(value, notes), notes), notes.problems

    return convert


def _policies(rows: Mapping[str, Sequence[Any]]) -> tuple[JsonObjects, list[Problem]]:
    notes = Notes()
    found = [o for row in rows[BGP_POLICY.name] for o in to_cilium(read_policy(row), notes)]
    return found, notes.problems


CONVERTERS: Final = (Converter((BGP_POLICY,), _policies, CILIUM),)
"""From BGPPolicy to Cilium's objects of v2."""
DRAFT_CONVERTERS: Final = (
    DraftConverter(NAMES, _of_draft(to_bgppolicy)),
    DraftConverter(NAMES, _of_draft(to_cilium), CILIUM),
)
"""From drafts to BGPPolicy, and to Cilium's objects of v2."""
