"""The claims cell: keeps over restarts which dialect owns a contested address, port or name.

Without a state directory, or with a file that cannot be used, a restart decides by the age of the
objects (`reconcilers.intent.arbitrate`).
"""

from __future__ import annotations

from typing import Final

from cells.hive import Health, Wiring
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.state.dialect_states import DialectStates
from cells.state.state_files import Format, KeptValue, LogLines, StateDirectory
from reconcilers.intent.arbitrate import PEER, Claim, Owners

FILE: Final = "claims.json"
FORMAT: Final = Format("waggle-claims/1", "claims", list[tuple[Claim, str]])
"""Each claim, with the dialect that owns it."""
LINES: Final = LogLines(
    "waggle.claims", "claims are not kept", "claims.unreadable", "claims.unwritten"
)


class ClaimStore:
    """The claims of this process and of the former process."""

    def __init__(
        self, directory: StateDirectory, health: Health, lifecycle: Lifecycle, jobs: Jobs
    ) -> None:
        self.owners: Owners = {}
        """The owning dialect of each claim."""
        self.remembered = 0
        """Peers of the last run, until this one has had peers, too."""
        self._kept = KeptValue(
            "claims",
            directory.file(FILE, LINES),
            value=lambda: self.owners,
            encode=encode,
            take=self._take,
            health=health,
            lifecycle=lifecycle,
            jobs=jobs,
        )

    def keep(self, owners: Owners) -> None:
        """Accept the present claims; without any, the last run's are kept until there are."""
        if self.remembered and not owners:
            return
        self.remembered = 0
        if owners != self.owners:
            self.owners = owners
            self._kept.check()

    def _take(self, octets: bytes) -> None:
        self.owners = decode(octets)
        self.remembered = sum(claim[0] == PEER for claim in self.owners)


def encode(owners: Owners) -> bytes:
    """Encode claims as the file has them."""
    return FORMAT.encode(sorted(owners.items()))


def decode(octets: bytes) -> dict[Claim, str]:
    """Decode a file. Raises ValueError for everything that `encode` did not write."""
    return dict(FORMAT.decode(octets))


WIRING = Wiring(
    provides=(StateDirectory, ClaimStore, DialectStates),
)
