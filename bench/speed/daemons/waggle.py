"""``waggle router``, as it is installed: validation, policy and bookkeeping switched on.

Also with the hot path as C, where ``make compiled`` has made it.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.speed.daemons.base import Contender
from tests.support.routers.waggle import Waggle as Driver


class Waggle(Contender):
    """Our own."""

    name = "waggle"
    switches = ("api",)

    @classmethod
    def missing(cls) -> str | None:
        return Driver.missing()

    @classmethod
    def version(cls) -> str:
        return f"{Driver.version()}, Python {sys.version.split()[0]}"

    def command(self) -> Sequence[str | Path]:
        # -P: what is installed, not what is in the directory from which this runs.
        config = self.directory / "router.yaml"
        return [sys.executable, "-P", "-m", "waggle", "router", "-c", config]

    def configuration(self) -> Mapping[str, str]:
        setting = self.setting
        document = {
            "asn": setting.asn,
            "routerID": setting.address,
            "listen": [{"address": setting.address}],
            "originate": list(setting.originate),
            "apiSocket": str(self.directory / "api"),
            "neighbors": [
                {
                    "address": neighbor.address,
                    "asn": neighbor.asn,
                    "passive": True,
                    "families": ["ipv4-unicast"],
                    "import": "all",
                    "export": "all" if neighbor.export else "none",
                    "holdTime": setting.hold_time,
                }
                for neighbor in setting.neighbors
            ],
        }
        # JSON is YAML.
        return {"router.yaml": json.dumps(document)}

    def ready(self) -> bool:
        return self._listens() and (self.directory / "api").exists()

    def ask(self, op: str, **arguments: object) -> dict[str, Any]:
        """Ask over its socket."""
        with socket.socket(socket.AF_UNIX) as api:
            api.settimeout(30)
            api.connect(str(self.directory / "api"))
            api.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            answer: dict[str, Any] = json.loads(api.makefile("rb").readline())
        if not answer["ok"]:
            raise RuntimeError(f"waggle router: {op}: {answer['error']}")
        return answer

    def switch(self, way: str, *, announce: bool) -> None:
        self.ask("announce" if announce else "withdraw", prefixes=[self.setting.switched])


class Compiled(Waggle):
    """The same with the hot path as C."""

    name = "compiled"
    TREE = Path(__file__).resolve().parents[3] / "build" / "compiled"

    @classmethod
    def missing(cls) -> str | None:
        if not list(cls.TREE.glob("*__mypyc*.so")):
            return "make compiled has not been run"
        return super().missing()

    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": f"{self.TREE}:{self.TREE / 'cmd'}"}
