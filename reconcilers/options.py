"""The options of the neutral intent, for all dialects: what happens to the routes of a drained node."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from resources.option_declarations import Options, setting

Drain: TypeAlias = Literal["off", "withdraw", "deprefer"]
DRAIN_TAINTS: Final = ("node.kubernetes.io/unschedulable",)
"""The taint of a cordoned node."""


class IntentOptions(Options, frozen=True):
    """Options of the intent; read by the agent, ``waggle render`` and ``waggle explain``."""

    drain: Annotated[
        Drain,
        setting(
            "routes of a cordoned or tainted node. off: unchanged; withdraw: withdraw all of them; "
            "deprefer: advertise them with GRACEFUL_SHUTDOWN and LOCAL_PREF 0 (RFC 8326)",
            flag="--drain",
        ),
    ] = "off"
    drain_taints: Annotated[
        tuple[str, ...],
        setting(
            "key of a taint that drains the node; repeatable; by default that of a cordoned node",
            flag="--drain-taint",
            metavar="KEY",
        ),
    ] = DRAIN_TAINTS
    drain_prepend: Annotated[
        int,
        msgspec.Meta(ge=0, le=16),
        setting(
            "with --drain=deprefer: how many more times the local AS is prepended",
            flag="--drain-prepend",
        ),
    ] = 0
