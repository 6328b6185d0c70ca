"""BIRD 2."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.speed.daemons.base import Contender, Neighbor
from tests.support.routers.bird import Bird as Driver
from tests.support.routers.bird import program


class Bird(Contender):
    """One protocol per neighbour, all routes in one table.

    BIRD continues an initial table at its next wake-up, up to three seconds later: KEEPALIVEs wake
    it, so that the wait is not measured.
    """

    name = "bird"
    needs_nudge = True
    switches = ("birdc", "socket")

    @classmethod
    def missing(cls) -> str | None:
        return Driver.missing()

    @classmethod
    def version(cls) -> str:
        return Driver.version()

    def command(self) -> Sequence[str | Path]:
        return [
            program() or "bird",
            "-f",
            "-c", self.directory / "bird.conf",
            "-s", self.directory / "control",
            "-P", self.directory / "pid",
        ]  # fmt: skip

    def configuration(self) -> Mapping[str, str]:
        routes = "\n".join(f"  route {prefix} blackhole;" for prefix in self.setting.originate)
        lines = [
            f"router id {self.setting.address};",
            f'log "{self.directory / "bird.log"}" {{ warning, error, fatal, bug }};',
            "protocol device { scan time 60; }",
            f"protocol static own {{ ipv4;\n{routes}\n}}",
            "protocol static switched { disabled; ipv4;",
            f"  route {self.setting.switched} blackhole;",
            "}",
            *(
                self._neighbor(number, neighbor)
                for number, neighbor in enumerate(self.setting.neighbors)
            ),
        ]
        return {"bird.conf": "\n".join(lines) + "\n"}

    def _neighbor(self, number: int, neighbor: Neighbor) -> str:
        setting = self.setting
        export = "all" if neighbor.export else "none"
        return (
            f"protocol bgp p{number} {{ local {setting.address} as {setting.asn};"
            f" neighbor {neighbor.address} as {neighbor.asn}; passive on;"
            f" hold time {setting.hold_time};"
            f" ipv4 {{ import all; export {export}; next hop self; }}; }}"
        )

    def ready(self) -> bool:
        return self._listens() and (self.directory / "control").exists()

    def request(self, command: str) -> None:
        """Send a command over the control socket."""
        driver = Driver.__new__(Driver)
        driver.directory = self.directory
        driver.ask(command)

    def switch(self, way: str, *, announce: bool) -> None:
        command = f"{'enable' if announce else 'disable'} switched"
        if way == "socket":
            self.request(command)
            return
        subprocess.run(
            ["birdc", "-s", str(self.directory / "control"), *command.split()],
            stdout=subprocess.DEVNULL,
            check=True,
        )
