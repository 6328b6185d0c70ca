"""ExaBGP: advertises the routes of its configuration, and no routes of other peers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.speed.daemons.base import Contender


def program() -> str | None:
    """Return the path of the program: of this environment, or the system's."""
    beside = Path(sys.executable).with_name("exabgp")
    return str(beside) if beside.exists() else shutil.which("exabgp")


class ExaBGP(Contender):
    """An ``exabgp``."""

    name = "exabgp"
    transit = False

    @classmethod
    def missing(cls) -> str | None:
        return None if program() else "ExaBGP is not installed (PyPI or Debian: exabgp)"

    @classmethod
    def version(cls) -> str:
        done = subprocess.run(
            [program() or "exabgp", "version"], capture_output=True, text=True, check=False
        )
        words = (done.stdout + done.stderr).split()
        number = next((word for word in words if word[:1].isdigit()), "?")
        return f"ExaBGP {number.split('-')[0]}"

    def command(self) -> Sequence[str | Path]:
        return [program() or "exabgp", "server", self.directory / "exabgp.conf"]

    def environment(self) -> Mapping[str, str]:
        return {
            "exabgp_tcp_bind": self.setting.address,
            "exabgp_tcp_port": "179",
            "exabgp_daemon_user": "root",
            "exabgp_daemon_drop": "false",
            "exabgp_log_level": "CRITICAL",
            "exabgp_api_cli": "false",
        }

    def configuration(self) -> Mapping[str, str]:
        return {"exabgp.conf": "\n".join(self._lines()) + "\n"}

    def _lines(self) -> Iterator[str]:
        setting = self.setting
        for neighbor in setting.neighbors:
            yield from (
                f"neighbor {neighbor.address} {{",
                f"  router-id {setting.address};",
                f"  local-address {setting.address};",
                f"  local-as {setting.asn};",
                f"  peer-as {neighbor.asn};",
                f"  hold-time {setting.hold_time};",
                "  passive true;",
                "  family { ipv4 unicast; }",
            )
            if setting.originate and neighbor.export:
                yield "  static {"
                yield from (f"    route {prefix} next-hop self;" for prefix in setting.originate)
                yield "  }"
            yield "}"
