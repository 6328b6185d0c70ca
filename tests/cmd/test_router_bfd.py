"""BFD of the router's neighbours: what the process is sent, and what its reports do to BGP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from cells.bfd.following import START_SECONDS
from reconcilers.bfd.process.process_messages import (
    CODEC,
    Change,
    Changes,
    Hello,
    Message,
    RemoveSessions,
    SessionStatus,
    SetSessions,
    Statuses,
    Wanted,
)
from reconcilers.bfd.rows import NO_PROCESS
from speaker.api import PathDown, PeerConfig, StateChanged
from speaker.bfd.session_values import Diagnostic, Key, SessionKey, Settings, State
from tests.reconcilers.bfd.build import status_of
from waggle.commands.router.bfd import WAITS, RouterBfd
from waggle.router_config import INSTANCE, load

HEAD = "asn: 65000\nrouterID: 192.0.2.1\nbfdProfiles: {quick: {transmitInterval: 50}}\n"
TOR = "{name: tor, address: 192.0.2.11, asn: 65001, bfd: %s}"
KEY = SessionKey("192.0.2.11", "")
QUICK = Settings(desired_min_tx=50_000)


class Lab:
    """The part of the router, between a speaker and a process that are the test's."""

    def __init__(self, tmp_path: Path, *neighbors: str) -> None:
        self.path_downs: list[tuple[str, str]] = []
        self.configs: dict[str, PeerConfig] = {}
        self.statuses: list[Any] = []
        self.now = 100.0
        self._path = tmp_path / "router.yaml"
        self._decoder = CODEC.decoder()
        self._sent: list[Message] = []
        self.lines: list[str] = []
        self.bfd = RouterBfd(cast("Any", self), self.lines.append, lambda: self.now)
        self.load(*neighbors)
        client: Any = self.bfd.client
        self._client = client
        client.connection_made(self)
        client.data_received(CODEC.encode(Hello("waggle-bfd")))
        self.report()

    def load(self, *neighbors: str) -> None:
        self._path.write_text(f"{HEAD}neighbors: [{', '.join(neighbors)}]\n")
        config = load(self._path)
        self.bfd.configured(config)
        for peer in config.peers():
            assert isinstance(peer, PeerConfig)
            self.set_peer(INSTANCE, cast("PeerConfig", self.bfd.held(peer)))
        self.settle()

    def settle(self) -> None:
        """Do what the jobs do after a change."""
        self.bfd.follower.refresh()
        self.bfd.runner.run(self.now)

    def sent(self) -> list[Message]:
        """Return the messages since the last call, but for the greeting."""
        messages, self._sent = self._sent, []
        return [message for message in messages if not isinstance(message, Hello)]

    def change(self, before: State, after: State, diagnostic: int = 0) -> None:
        self._client.data_received(
            CODEC.encode(
                Changes((Change(KEY, before, after, diagnostic, State.UP, 0, True, 7, 150_000),))
            )
        )
        self.settle()

    def report(self, *statuses: SessionStatus) -> None:
        """Have the process report all its sessions."""
        self._client.data_received(CODEC.encode(Statuses(statuses, last=True)))
        self.settle()

    def bgp(self, old: str, new: str) -> None:
        self.bfd.event(
            StateChanged(instance=INSTANCE, peer="tor", address=None, old=old, new=new, reason="")
        )
        self.settle()

    # The connection

    def get_write_buffer_size(self) -> int:
        return 1  # a message follows others, so it is no system call of the client's own

    def write(self, data: bytes) -> None:
        self._sent += self._decoder.feed(data)

    # The speaker

    def peers(self) -> Sequence[Any]:
        return self.statuses

    def set_peer(self, _: str, peer: PeerConfig) -> None:
        self.configs[peer.name] = peer

    def peer_config(self, _: str, name: str) -> PeerConfig | None:
        return self.configs.get(name)

    def paths_down(self, paths: Sequence[PathDown]) -> None:
        assert all(path.independent for path in paths)
        self.path_downs += [(path.peer, path.reason) for path in paths]


def test_the_process_gets_the_sessions_of_the_file(tmp_path: Path) -> None:
    lab = Lab(tmp_path, TOR % "quick", "{address: 192.0.2.12, asn: 65001}")
    assert lab.sent() == [SetSessions((Wanted(KEY, QUICK),))]


@pytest.mark.parametrize(
    ("neighbors", "messages"),
    [
        (("{name: tor, address: 192.0.2.11, asn: 65001, holdTime: 9, bfd: quick}",), []),
        (
            (TOR % "{transmitInterval: 70}",),
            [SetSessions((Wanted(KEY, Settings(desired_min_tx=70_000)),))],
        ),
        (("{name: tor, address: 192.0.2.11, asn: 65001}",), [RemoveSessions((KEY,))]),
    ],
)
def test_a_reload_sends_what_differs(
    neighbors: Sequence[str], messages: list[Message], tmp_path: Path
) -> None:
    lab = Lab(tmp_path, TOR % "quick")
    lab.sent()
    lab.load(*neighbors)
    assert lab.sent() == messages


def test_a_session_has_the_key_of_its_file_and_after_a_reload_the_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("first secret\n")
    neighbor = TOR % f"{{profile: quick, key: {{file: {secret}, id: 7}}}}"
    lab = Lab(tmp_path, neighbor)
    first = replace(QUICK, key=Key(7, b"first secret", meticulous=True))
    assert lab.sent() == [SetSessions((Wanted(KEY, first),))]
    secret.write_text("second secret")
    lab.load(neighbor.replace("id: 7", "id: 8, meticulous: false"))
    second = replace(QUICK, key=Key(8, b"second secret", meticulous=False))
    assert lab.sent() == [SetSessions((Wanted(KEY, second),))]
    lab.report(status_of(KEY, settings=second))
    (item,) = lab.bfd.items(None, None)
    assert item.authentication == "SHA1"
    # What the speaker is configured with may be recorded, what the API has is read by users.
    for shown in (repr(lab.configs), repr(item), repr(first), caplog.text):
        assert "secret" not in shown.replace(str(secret), "")


def test_a_neighbor_that_its_interface_hears_no_longer_keeps_its_session(tmp_path: Path) -> None:
    """BFD is there to find out why: without its session it would be AdminDown, and no failure."""
    lab = Lab(tmp_path, "{name: tor, interface: eth0, asn: 65001, bfd: quick}")
    lab.sent()
    lab.statuses = [
        SimpleNamespace(instance=INSTANCE, name="tor", interface="eth0", address="fe80::9")
    ]
    lab.settle()
    assert lab.sent() == [SetSessions((Wanted(SessionKey("fe80::9", "", "eth0"), QUICK),))]
    lab.statuses = [SimpleNamespace(instance=INSTANCE, name="tor", interface="eth0", address=None)]
    lab.settle()
    assert lab.sent() == []


def test_a_lost_path_ends_the_bgp_session_with_the_diagnostic(tmp_path: Path) -> None:
    lab = Lab(tmp_path, TOR % "quick")
    lab.change(State.INIT, State.UP)
    lab.bgp("OpenConfirm", "Established")
    lab.now += 60
    lab.change(State.UP, State.DOWN, Diagnostic.CONTROL_DETECTION_TIME_EXPIRED)
    assert lab.path_downs == [("tor", "Control Detection Time Expired")]


def test_a_session_that_was_never_up_ends_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path, TOR % "quick")
    lab.bgp("OpenConfirm", "Established")
    lab.change(State.INIT, State.DOWN, Diagnostic.CONTROL_DETECTION_TIME_EXPIRED)
    assert lab.path_downs == []


def test_a_neighbor_that_becomes_strict_keeps_its_session(tmp_path: Path) -> None:
    lab = Lab(tmp_path, TOR % "quick")
    lab.bgp("OpenConfirm", "Established")
    lab.load(TOR % "{profile: quick, strict: true}")
    assert lab.configs["tor"].disabled_reason is None
    lab.bgp("Established", "Idle")
    lab.settle()
    assert lab.configs["tor"].disabled_reason == WAITS


def test_a_strict_neighbor_waits_for_bfd(tmp_path: Path) -> None:
    lab = Lab(tmp_path, TOR % "{strict: true}")
    assert lab.configs["tor"].disabled_reason == WAITS
    lab.change(State.INIT, State.UP)
    assert lab.configs["tor"].disabled_reason is None
    lab.bgp("OpenConfirm", "Established")
    lab.now += 60
    lab.change(State.UP, State.DOWN, Diagnostic.CONTROL_DETECTION_TIME_EXPIRED)
    assert lab.configs["tor"].disabled_reason == WAITS
    assert lab.configs["tor"].disabled_for_a_while, "the routes of a restarting neighbor stay"


def test_the_api_has_the_sessions_of_the_file_with_the_state_of_the_process(
    tmp_path: Path,
) -> None:
    strict = "{name: spine, address: 192.0.2.12, asn: 65001, bfd: {profile: quick, strict: true}}"
    lab = Lab(tmp_path, TOR % "{profile: quick}", strict, "{address: 192.0.2.13, asn: 65001}")
    spine, tor = lab.bfd.items(None, None)
    assert (tor.node, tor.instance, tor.peer) == ("192.0.2.1", INSTANCE, "tor")
    assert (tor.address, tor.profile, tor.state) == ("192.0.2.11", "quick", "Unknown")
    assert (tor.strict, spine.strict) == (False, True)
    lab.report(status_of(KEY))
    (tor,) = lab.bfd.items("tor", INSTANCE)
    assert (tor.state, tor.problem) == ("Up", None)
    lab.change(State.UP, State.DOWN, Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN)
    (tor,) = lab.bfd.items("192.0.2.11", None)
    assert tor.state == "Down"
    assert tor.diagnostic == "Neighbor Signaled Session Down"
    assert lab.bfd.items("tor", "another") == []
    assert lab.bfd.items("leaf", None) == []


def test_without_the_process_the_sessions_have_that_as_their_problem(tmp_path: Path) -> None:
    lab = Lab(tmp_path, TOR % "{profile: quick}")
    lab.report(status_of(KEY))
    lab._client.connection_lost(None)
    lab.settle()
    lab.now += START_SECONDS
    lab.settle()
    (tor,) = lab.bfd.items(None, None)
    assert (tor.state, tor.problem) == ("Unknown", NO_PROCESS)
