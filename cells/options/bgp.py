"""Options of the speaker, and of what is applied to it and reported of it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from resources.option_declarations import Options, setting

LARGEST_NUMBER_OF_ROUTES: Final = 2**31 - 1
"""The largest number of routes that an option takes; the speaker counts no further."""


class SpeakerOptions(Options, frozen=True):
    """Options of the speaker cell."""

    record_file: Annotated[
        str | None,
        setting(
            "write every input of the speaker into this file, for waggle replay; none by default",
            flag="--record-file",
            metavar="PATH",
        ),
    ] = None
    record_limit: Annotated[
        int,
        msgspec.Meta(ge=1),
        setting("how large that file may become, in MiB", flag="--record-limit", metavar="MIB"),
    ] = 256


class ApplyOptions(Options, frozen=True):
    """Options of the apply cell."""

    verify_interval: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting(
            "seconds between two full verifications of what the speaker holds; "
            "0: only on request (waggle verify)",
            flag="--verify-interval",
            metavar="SECONDS",
        ),
    ] = 300.0
    keep_received: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=LARGEST_NUMBER_OF_ROUTES)] | Literal["all"],
        setting(
            "received paths to keep of each peer that its import policy does not accept, or all; "
            "the others are only counted",
            flag="--keep-received",
            metavar="N|all",
        ),
    ] = 1000
    received_limit: Annotated[
        int,
        msgspec.Meta(ge=0, le=LARGEST_NUMBER_OF_ROUTES),
        setting(
            "prefixes of a family that a peer may send: beyond it the session is ended for 10 "
            "minutes, from 75 % on there is a warning; 0: no limit",
            flag="--received-limit",
            metavar="N",
        ),
    ] = 2_000_000
    enforce_first_as: Annotated[
        bool,
        setting(
            "routes of an eBGP peer whose AS path begins with another AS than the peer's are "
            "malformed; false: they are not, for peers that are route servers",
            flag="--enforce-first-as",
        ),
    ] = True


class ReadinessOptions(Options, frozen=True):
    """Options of the readiness cell."""

    timeout_seconds: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting(
            "how long after the first pass readiness waits for peers without their initial table",
            flag="--ready-timeout-seconds",
        ),
    ] = 60.0


class ReportOptions(Options, frozen=True):
    """Options of the report cell."""

    status: Annotated[
        bool,
        setting(
            "write the status of the objects that this node reports on; if false, a status that was "
            "written is removed",
            flag="--status-report",
        ),
    ] = True
    events: Annotated[
        bool, setting("write Events about sessions and configuration", flag="--events")
    ] = True
