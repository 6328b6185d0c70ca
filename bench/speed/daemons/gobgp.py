"""GoBGP. Its configuration cannot originate prefixes: a peer announces them before the measurement."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.speed.daemons.base import Contender
from tests.support.routers.gobgp import GoBGP as Driver


class GoBGP(Contender):
    """A ``gobgpd``."""

    name = "gobgp"
    originates = False
    switches = ("gobgp",)

    @classmethod
    def missing(cls) -> str | None:
        return Driver.missing()

    @classmethod
    def version(cls) -> str:
        return Driver.version()

    def command(self) -> Sequence[str | Path]:
        return [
            "gobgpd",
            "-f", self.directory / "gobgpd.toml",
            "--api-hosts", f"unix://{self.directory / 'api'}",
            "--pprof-disable",
            "-l", "error",
        ]  # fmt: skip

    def configuration(self) -> Mapping[str, str]:
        return {"gobgpd.toml": "\n".join(self._lines()) + "\n"}

    def _lines(self) -> Iterator[str]:
        setting = self.setting
        yield from (
            "[global.config]",
            f"as = {setting.asn}",
            f'router-id = "{setting.address}"',
            "port = 179",
            f'local-address-list = ["{setting.address}"]',
        )
        exported = [f'"{neighbor.address}/32"' for neighbor in setting.neighbors if neighbor.export]
        if len(exported) < len(setting.neighbors):
            # The set of peers with export: the opposite set makes it slower.
            yield from (
                "[global.apply-policy.config]",
                'export-policy-list = ["nothing"]',
                'default-export-policy = "accept-route"',
                "[[defined-sets.neighbor-sets]]",
                'neighbor-set-name = "exported"',
                f"neighbor-info-list = [{', '.join(exported)}]",
                "[[policy-definitions]]",
                'name = "nothing"',
                "[[policy-definitions.statements]]",
                "[policy-definitions.statements.conditions.match-neighbor-set]",
                'neighbor-set = "exported"',
                'match-set-options = "invert"',
                "[policy-definitions.statements.actions]",
                'route-disposition = "reject-route"',
            )
        for neighbor in setting.neighbors:
            yield from (
                "[[neighbors]]",
                "[neighbors.config]",
                f'neighbor-address = "{neighbor.address}"',
                f"peer-as = {neighbor.asn}",
                "[neighbors.transport.config]",
                "passive-mode = true",
                "[neighbors.timers.config]",
                f"hold-time = {setting.hold_time}",
                f"keepalive-interval = {setting.hold_time // 3}",
                "[[neighbors.afi-safis]]",
                "[neighbors.afi-safis.config]",
                'afi-safi-name = "ipv4-unicast"',
            )

    def ready(self) -> bool:
        return self._listens() and (self.directory / "api").exists()

    def switch(self, way: str, *, announce: bool) -> None:
        subprocess.run(
            [
                "gobgp", "--target", f"unix://{self.directory / 'api'}",
                "global", "rib", "add" if announce else "del", self.setting.switched,
                "-a", "ipv4",
            ],
            stdout=subprocess.DEVNULL,
            check=True,
        )  # fmt: skip
