"""``waggle-agent`` as a process of its own, in a network namespace, with files in a directory.

Tests write manifests into it and ask it over its socket, as people do. Never reaches inside.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cells.api.client import AgentError, at_socket
from tests.support.daemon import Daemon
from tests.support.netns import Namespace
from tests.support.wait import NotReadyError, eventually
from waggle.__main__ import main


class Agent:
    """One agent; ``directory`` gets its manifests, its socket and its log.

    With a ``kubeconfig`` it reads that cluster, and no manifests.
    """

    def __init__(
        self,
        namespace: Namespace | None,
        directory: Path,
        *,
        node: str = "test-node",
        arguments: Sequence[str] = (),
        kubeconfig: Path | None = None,
        program: Sequence[str] = ("waggle_agent",),
        kernel: bool = False,
    ) -> None:
        """``program`` is the module to run, with the arguments that come first.

        ``kernel``: it may install received routes, as it does by default with FRR-k8s.
        """
        if not kernel:
            arguments = (*arguments, "--disable-cell", "kernel")
        self.node = node
        self.directory = directory
        self.manifests = directory / "manifests"
        self.socket = directory / "api"
        self.manifests.mkdir(parents=True, exist_ok=True)
        self.daemon = Daemon(
            "waggle-agent",
            [
                sys.executable, "-m", *program,
                *(("--kubeconfig", kubeconfig) if kubeconfig else ("--manifests", self.manifests)),
                "--node-name", node,
                "--api-socket", self.socket,
                *arguments,
            ],
            log=directory / "log",
            namespace=namespace,
        )  # fmt: skip

    def write(self, name: str, text: str) -> None:
        """Put a manifest in place, whole from the first moment."""
        fresh = self.directory / f".{name}.new"
        fresh.write_text(text)
        fresh.replace(self.manifests / name)

    def write_objects(self, name: str, *objects: Mapping[str, Any]) -> None:
        """Put objects in place as one JSON file."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.write(name, json.dumps(document))

    def remove(self, name: str) -> None:
        """Take a manifest away."""
        (self.manifests / name).unlink()

    def start(self) -> None:
        """Start it; it need not answer yet."""
        self.daemon.start()

    def wait_ready(self) -> None:
        """Wait until it answers."""
        eventually(self.peers, context=self.daemon.tail)

    def stop(self) -> None:
        """End it politely."""
        self.daemon.stop()

    def ask(self, target: str, /, **query: str | None) -> list[dict[str, Any]]:
        """Return the items of an answer of its API."""
        self.daemon.check()
        try:
            items: list[dict[str, Any]] = at_socket(self.socket).get(target, query)["items"]
        except AgentError as error:
            raise NotReadyError(str(error)) from error
        return items

    def peers(self) -> dict[str, dict[str, Any]]:
        """Return its sessions as ``waggle peers -o json`` has them, by the peer's name."""
        return {item["name"]: item for item in self.ask("/v1/peers")}

    def routes(self, table: str, peer: str | None = None) -> list[dict[str, Any]]:
        """Return routes: ``available``, ``advertised`` or ``received``."""
        return self.ask("/v1/routes", table=table, peer=peer)

    def health(self) -> dict[str, dict[str, Any]]:
        """Return the health of each part, by its path."""
        return {"/".join(item["path"]): item for item in self.ask("/v1/health")}

    def render(self, *arguments: str) -> dict[str, Any]:
        """Return what ``waggle render`` promises of the manifests as they are now."""
        return waggle("render", "-f", str(self.manifests), "--node", self.node, *arguments)

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run ``waggle peers`` or ``waggle routes`` on it."""
        return waggle(*arguments, "--socket", str(self.socket))


def waggle(*arguments: str) -> dict[str, Any]:
    """Return what ``waggle ... -o json`` prints, run in this process: a start takes half a second.

    Fails if its exit status is not 0.
    """
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        status = main([*arguments, "-o", "json"])
    if status != 0:
        # Refusals are in the document.
        texts = f"{errors.getvalue()}{printed.getvalue()}"
        message = f"waggle {' '.join(arguments)}: status {status}: {texts}"
        raise RuntimeError(message)
    answer: dict[str, Any] = json.loads(printed.getvalue())
    return answer
