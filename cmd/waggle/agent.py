"""The flag of every sub-command that reads from a running agent; `cells.api.client` is the client."""

from __future__ import annotations

import argparse
from pathlib import Path

from cells.api.client import SOCKET_ENV, AgentError, default_socket, get, post, stream

__all__ = ["AgentError", "add_socket_flag", "default_socket", "get", "post", "stream"]


def add_socket_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--socket``."""
    parser.add_argument(
        "--socket",
        metavar="PATH",
        type=Path,
        help=f"the agent's socket [{SOCKET_ENV}; default {default_socket()}]".replace("%", "%%"),
    )
