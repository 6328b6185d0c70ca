"""``waggle router`` as installed, with validation, policy and bookkeeping.

Also with the hot path as C, where ``make compiled`` has made it.
"""

from __future__ import annotations

import functools
import json
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.speed.daemons.base import Contender
from speaker.server import PREFIX_TABLE_FORM
from tests.support.routers.waggle import Waggle as Driver

_ANSWER: Final = 4096


class Waggle(Contender):
    """``waggle router``."""

    name = "waggle"
    switches = ("api",)
    _api: socket.socket | None = None

    @classmethod
    def missing(cls) -> str | None:
        return Driver.missing()

    @classmethod
    def version(cls) -> str:
        python = sys.version.split()[0]
        return f"{Driver.version()}, Python {python}, prefix tables in {PREFIX_TABLE_FORM}"

    def command(self) -> Sequence[str | Path]:
        # -P: the installed package, not the working directory.
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

    def __exit__(self, *exc: object) -> None:
        """End the router, and the connection to its socket."""
        if self._api is not None:
            self._api.close()
        super().__exit__(*exc)

    def request(self, request: bytes) -> None:
        """Send a request over its socket, with a persistent connection like that of a controller.

        Raises RuntimeError for an answer with another status than 200.
        """
        api = self._api
        if api is None:
            api = self._api = socket.socket(socket.AF_UNIX)
            api.settimeout(30)
            api.connect(str(self.directory / "api"))
        # Without a stream, whose two buffers would add 0.01 ms.
        api.sendall(request)
        answer = b""
        while not answer.endswith(b"}"):
            part = api.recv(_ANSWER)
            if not part:
                raise ConnectionResetError(f"waggle router: {request!r}: no answer")
            answer += part
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"waggle router: {request!r}: {answer!r}")

    def switch(self, way: str, *, announce: bool) -> None:
        self.request(self._requests[announce])

    @functools.cached_property
    def _requests(self) -> dict[bool, bytes]:
        # Encoded beforehand, like all messages of the tester.
        body = json.dumps({"prefixes": [self.setting.switched]}).encode()
        head = "POST /v1/{} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n"
        return {
            announce: head.format(action, len(body)).encode() + body
            for announce, action in ((True, "announce"), (False, "withdraw"))
        }


class Pure(Waggle):
    """``waggle router`` with prefix tables in Python, where C's are built."""

    name = "pure"

    @classmethod
    def missing(cls) -> str | None:
        if PREFIX_TABLE_FORM == "Python":
            return "the prefix tables of waggle itself are in Python"
        return super().missing()

    @classmethod
    def version(cls) -> str:
        return "the same with prefix tables in Python"

    def environment(self) -> Mapping[str, str]:
        return {"WAGGLE_PURE": "1"}


class Compiled(Waggle):
    """``waggle router`` with the hot path compiled to C."""

    name = "compiled"
    TREE = Path(__file__).resolve().parents[3] / "build" / "compiled"

    @classmethod
    def missing(cls) -> str | None:
        if not list(cls.TREE.glob("*__mypyc*.so")):
            return "make compiled has not been run"
        return super().missing()

    @classmethod
    def version(cls) -> str:
        return "the same with its hot path as C"

    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": f"{self.TREE}:{self.TREE / 'cmd'}"}
