"""Sessions that are reset by hand, and routes that are sent again: `waggle peers clear`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from cells.api.model import ClearedItem
from cells.api.resource import NotFoundError
from cells.options import NodeOptions
from cells.serve.clear import IN, OUT, RESET, TRIED, Clear, ClearPeers
from cells.serve.peer_names import PeerNames
from cells.state.node import ThisNode
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows
from tests.support.api import MadeUp, serving
from waggle.__main__ import main


class Session:
    """A session of an agent, Established where there is a router."""

    def __init__(self, *, router: bool = True) -> None:
        self.rows = Rows()
        self.rows.apply([INSTANCE], [PEER])
        if router:
            self.rows.router()
        self.rows.network.run(5)
        names = PeerNames(self.rows.db, self.rows.intent)
        self._clear = ClearPeers(ThisNode(NodeOptions(name="n")), self.rows.speaker, names)

    def clear(self, soft: Literal["in", "out"] | None, peer: str = PEER.name) -> ClearedItem:
        """Clear it, and return the answer."""
        (item,) = asyncio.run(self._clear.clear(Clear(peer, None, soft)))
        self.rows.network.run(5)
        return item

    @property
    def flaps(self) -> int:
        """The number of ended sessions."""
        (status,) = self.rows.speaker.peers()
        assert status.established
        return status.flaps


def test_a_session_is_reset_and_comes_back() -> None:
    session = Session()
    item = session.clear(None)
    assert (item.done, item.message) == (True, RESET)
    assert session.flaps == 1


def test_with_soft_the_session_stays_up() -> None:
    session = Session()
    assert session.clear("in").message == IN
    assert session.clear("out", PEER.address or "").message == OUT
    assert session.flaps == 0


def test_a_session_that_is_down_is_tried_again_and_its_routes_are_not_sent() -> None:
    session = Session(router=False)
    item = session.clear("out")
    assert not item.done
    assert item.message.startswith("the session is ")
    item = session.clear(None)
    assert (item.done, item.message) == (True, TRIED)
    with pytest.raises(NotFoundError, match="no peer is called tor-9"):
        session.clear(None, "tor-9")


def test_the_command_prints_which_of_them_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        flags = ["--socket", str(path)]
        assert main(["peers", "clear", "tor-1", "--soft", "in", *flags]) == 0
        assert capsys.readouterr().out == "tor-1: soft in\n"
        assert main(["peers", "clear", "tor-9", *flags]) == 1
    assert main(["peers", "clear"]) == 2
    assert main(["peers", "--soft", "in"]) == 2
