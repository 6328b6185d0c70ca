"""OpenBGPD: four processes, counted together."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.speed.daemons.base import Contender

PROGRAM = Path("/usr/sbin/bgpd")
CHROOT = Path("/run/openbgpd")


class OpenBGPD(Contender):
    """OpenBSD's ``bgpd``."""

    name = "openbgpd"
    switches = ("bgpctl",)

    @classmethod
    def missing(cls) -> str | None:
        return None if PROGRAM.exists() else "OpenBGPD is not installed (Debian: openbgpd)"

    @classmethod
    def version(cls) -> str:
        done = subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=True)
        return (done.stdout + done.stderr).strip()

    def command(self) -> Sequence[str | Path]:
        return [PROGRAM, "-d", "-f", self.directory / "bgpd.conf"]

    def configuration(self) -> Mapping[str, str]:
        # A packaged one gets its directory from the service manager.
        CHROOT.mkdir(mode=0o755, exist_ok=True)
        return {"bgpd.conf": "\n".join(self._lines()) + "\n"}

    def _lines(self) -> Iterator[str]:
        setting = self.setting
        yield from (
            f"AS {setting.asn}",
            f"router-id {setting.address}",
            f"listen on {setting.address}",
            f'socket "{self.directory / "control"}"',
            "fib-update no",
            f"holdtime {setting.hold_time}",
        )
        for prefix in setting.originate:
            yield f"network {prefix}"
        for neighbor in setting.neighbors:
            yield from (
                f"neighbor {neighbor.address} {{",
                f"  remote-as {neighbor.asn}",
                "  passive",
                "  announce IPv4 unicast",
                *([] if neighbor.export else ["  export none"]),
                "}",
            )
        yield from ("allow from any", "allow to any")

    def ready(self) -> bool:
        return self._listens() and (self.directory / "control").exists()

    def switch(self, way: str, *, announce: bool) -> None:
        verb = "add" if announce else "delete"
        subprocess.run(
            [
                "/usr/sbin/bgpctl", "-s", str(self.directory / "control"),
                "network", verb, self.setting.switched,
            ],
            stdout=subprocess.DEVNULL,
            check=True,
        )  # fmt: skip
