"""Commands in containers: the API server's ``pods/exec`` over a WebSocket.

No input, no terminal. Each message begins with the octet of its channel: 1 standard output, 2 standard
error, 3 the result as a metav1.Status. ``v4.channel.k8s.io``, of Kubernetes before 1.30, differs from
v5 in the end of the input alone. Source: Kubernetes API,
``k8s.io/apimachinery/pkg/util/remotecommand``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

import aiohttp
import msgspec

from resources.decimal_numbers import decimal_number
from resources.kubernetes import responses
from resources.kubernetes.connection import Connection
from resources.kubernetes.errors import InvalidResponse, KubernetesError, StatusError
from resources.meta import Struct

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
OUTPUT, ERROR_OUTPUT, RESULT = 1, 2, 3
"""Channels."""
ERROR_OCTETS: Final = 4096
"""Octets of standard error that are kept."""


class CommandFailed(KubernetesError):  # noqa: N818  the name is the condition
    """The command ended with another status than 0, or could not be started."""

    def __init__(self, status: int | None, message: str, error_output: str) -> None:
        super().__init__(error_output or message)
        self.status = status
        """Its exit status; None if it was not started."""
        self.error_output = error_output
        """The end of its standard error, without line ends."""


class _Cause(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Details(Struct, frozen=True):
    causes: tuple[_Cause, ...] = ()


class _Result(Struct, frozen=True):
    status: str = ""
    message: str = ""
    details: _Details | None = None


class Container(msgspec.Struct, frozen=True):
    """A container of a Pod."""

    namespace: str
    pod: str
    name: str


async def run_command(
    connection: Connection, container: Container, command: Sequence[str]
) -> AsyncGenerator[bytes]:
    """Run a command in a container (``pods/exec``), and yield its standard output as it comes.

    Raises `CommandFailed` behind the output, and other errors of requests.
    """
    path = f"/api/v1/namespaces/{container.namespace}/pods/{container.pod}/exec"
    parameters = [
        ("container", container.name),
        ("stdout", "true"),
        ("stderr", "true"),
        *(("command", word) for word in command),
    ]
    errors = b""
    async with connection.websocket(path, parameters, PROTOCOLS) as socket:
        if socket.protocol not in PROTOCOLS:
            raise StatusError(400, f"the API server has none of {', '.join(PROTOCOLS)}")
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == OUTPUT and data:
                yield data
            elif channel == ERROR_OUTPUT:
                errors = (errors + data)[-ERROR_OCTETS:]
            elif channel == RESULT and data:
                _check(responses.decode(data, _Result, "a result"), errors)
                return
    raise InvalidResponse("the connection was closed before the command ended")


def _check(result: _Result, errors: bytes) -> None:
    """Raise `CommandFailed` unless the result is a success."""
    if result.status == "Success":
        return
    causes = result.details.causes if result.details is not None else ()
    codes = (decimal_number(c.message, 255) for c in causes if c.reason == "ExitCode")
    status = next((code for code in codes if code is not None), None)
    text = " ".join(errors.decode("utf-8", "replace").split())
    raise CommandFailed(status, responses.excerpt(result.message.encode()), text)
