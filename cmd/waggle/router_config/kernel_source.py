"""An entry of ``originate``: routes that another program has installed in the kernel."""

from __future__ import annotations

from typing import Annotated

import msgspec

from reconcilers.model import PrefixRule
from reconcilers.redistribution import Redistribution
from resources.host import BGP_PROTOCOL, KernelTable
from speaker.nlri import prefix_to_wire
from waggle.router_config.file_values import Value
from waggle.router_config.policies import PrefixList, PrefixRange, check_prefixes

LOCAL_TABLE = 255


class KernelSource(Value, frozen=True):
    """A table of the kernel, and which of its routes are originated."""

    table: Annotated[int, msgspec.Meta(ge=1, le=0xFFFFFFFF)]
    protocol: Annotated[int, msgspec.Meta(ge=0, le=255)]
    prefixes: Annotated[PrefixList, msgspec.Meta(min_length=1)]

    def redistribution(self, installed: int | None) -> Redistribution:
        """Return what is permitted. Raises ValueError with the key.

        ``installed`` is the protocol of the routes that the router itself installs.
        """
        if self.table == LOCAL_TABLE:
            raise ValueError("table: 255 is the kernel's table of local addresses")
        if self.protocol == BGP_PROTOCOL:
            raise ValueError(f"protocol: {BGP_PROTOCOL} is BGP: received routes are not originated")
        if self.protocol == installed:
            raise ValueError(f"protocol: {installed} is that of installed routes")
        check_prefixes("prefixes", self.prefixes)
        return Redistribution(
            KernelTable(self.table, self.protocol), tuple(map(_rule, self.prefixes))
        )


def _rule(item: str | PrefixRange) -> PrefixRule:
    if isinstance(item, str):
        item = PrefixRange(prefix=item)
    prefix_to_wire(item.prefix)
    return PrefixRule(item.prefix, item.ge, item.le)
