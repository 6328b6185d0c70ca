"""Community: names of BGP communities, for BGPAdvertisements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from resources.crds.schema_markers import doc
from resources.errors import FieldError, shortened
from resources.frrk8s.communities import parse_community
from resources.meta import Struct
from resources.metallb.field_rules import twice_errors
from resources.metallb.objects import MetalLBObject


class CommunityAlias(Struct, frozen=True):
    """One name."""

    name: Annotated[str, doc("The name; unique among all Communities.")] = ""
    value: Annotated[str, doc("The community: 65000:1, or large:65000:1:2.")] = ""


class CommunitySpec(Struct, frozen=True):
    """The specification."""

    communities: Annotated[tuple[CommunityAlias, ...], doc("The names.")] = ()


class Community(MetalLBObject, frozen=True, kw_only=True):
    """One set of names."""

    spec: CommunitySpec = msgspec.field(default_factory=CommunitySpec)


def community_errors(row: Community) -> Iterator[FieldError]:
    """Yield the rules that the names of a MetalLB Community break, each on its own."""
    for i, alias in enumerate(row.spec.communities):
        try:
            parse_community(alias.value)
        except ValueError as error:
            text = f"alias {shortened(alias.name)}: {error}"
            yield FieldError(f"spec.communities[{i}].value", text)
    yield from twice_errors((alias.name for alias in row.spec.communities), "spec.communities")


def is_literal(text: str) -> bool:
    """True if a text is a BGP community itself, and no name in a Community."""
    try:
        parse_community(text)
    except ValueError:
        return False
    return True
