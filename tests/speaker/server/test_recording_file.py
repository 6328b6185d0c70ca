"""The file of a recording: private, complete, and without delay of the event loop."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from speaker.api import Event, InstanceConfig, PeerConfig, RecordingEnded, RouteAttributes, Secret
from speaker.iana import IPV4_UNICAST
from speaker.recording import Player
from speaker.server import Speaker
from speaker.server.recording_file import RecordingFile, Reservation
from tests.support.wait import eventually, until

loops = pytest.mark.usefixtures("both_event_loops")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lines wait in memory for a moment only: each file that is closed waits as long."""
    monkeypatch.setattr("speaker.server.recording_file._WRITE_INTERVAL_SECONDS", 0.02)


def opened(path: Path) -> RecordingFile:
    return RecordingFile(path, Reservation(path).create())


def test_lines_are_written_in_order_to_a_file_of_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "r"
    file = opened(path)
    lines = [b"%d\n" % n * 100 for n in range(20_000)]
    for line in lines:
        file.write(line)
    file.close(60)
    assert file.trouble is None
    assert path.read_bytes() == b"".join(lines)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_file_is_kept_under_another_name(tmp_path: Path) -> None:
    for n in range(3):
        file = opened(tmp_path / "r")
        file.write(b"%d" % n)
        file.close(60)
    assert (tmp_path / "r").read_bytes() == b"2"
    assert (tmp_path / "r.1").read_bytes() == b"1"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_name_that_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "r").symlink_to(tmp_path / "precious")
    with pytest.raises(FileExistsError):
        opened(tmp_path / "r")
    assert (tmp_path / "precious").read_text() == "precious"
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "nowhere" / "r")


def test_a_file_to_which_another_process_records_is_refused_and_not_renamed(tmp_path: Path) -> None:
    path = tmp_path / "r"
    first = opened(path)
    first.write(b"first")
    for _ in range(2):
        with pytest.raises(OSError, match="another process records to it"):
            Reservation(path)
    first.close(60)
    assert path.read_bytes() == b"first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]
    Reservation(path).release()


def test_a_reservation_that_is_given_back_has_changed_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r"
    Reservation(path).release()
    assert list(tmp_path.iterdir()) == []
    path.write_text("of the last run")
    Reservation(path).release()
    assert path.read_text() == "of the last run"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_a_full_disk_ends_the_recording_only() -> None:
    file = RecordingFile(Path("/dev/full"), os.open("/dev/full", os.O_WRONLY))
    file.write(b"line\n")

    def ended() -> None:
        assert file.trouble == "/dev/full: No space left on device"

    eventually(ended)
    file.write(b"line\n")
    file.close(60)


def test_a_slow_disk_ends_the_recording_without_delay() -> None:
    reader, writer = os.pipe()
    file = RecordingFile(Path("slow"), writer, max_waiting=1_000_000)
    # A write that waited for the disk would wait for ever: the pipe is not read.
    for _ in range(2_000):
        file.write(b"x" * 1_000)
    assert file.trouble == "slow: the disk is too slow for the recording"
    os.close(reader)
    file.close(60)


@loops
def test_a_recording_has_every_input_of_a_speaker(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    events: list[Event] = []

    async def live() -> None:
        a, b = (Speaker(on_event=events.append, record=path), Speaker())
        for speaker, asn, listen in ((a, 65001, (("127.0.0.1", 0),)), (b, 65002, ())):
            speaker.set_instance(
                InstanceConfig(
                    name="i", local_asn=asn, router_id=f"192.0.2.{asn - 65000}", listen=listen
                )
            )
        async with a, b:
            await until(lambda: a.instances()[0].listening)
            (status,) = a.instances()
            port = status.listening[0][1]
            a.set_peer(
                "i",
                PeerConfig(
                    name="b", address="127.0.0.2", peer_asn=65002, passive=True, export="all"
                ),
            )
            # Never Established, but its password is configuration, too.
            a.set_peer(
                "i",
                PeerConfig(name="c", address="192.0.2.77", passive=True, password=Secret("hush")),
            )
            a.update_local("i", {IPV4_UNICAST: {b"\x08\x0a": RouteAttributes()}})
            b.set_peer(
                "i",
                PeerConfig(
                    name="a",
                    address="127.0.0.1",
                    port=port,
                    local_address="127.0.0.2",
                    peer_asn=65001,
                    import_="all",
                ),
            )
            await until(lambda: list(b.routes_available("i", IPV4_UNICAST)))
            # All is written by then, on a busy machine, too.
            await a.stop(timeout=60)

    asyncio.run(live())
    with path.open("rb") as file:
        player = Player(file)
        steps = list(player.play())
    assert player.difference is None
    assert player.end == "stopped"
    assert player.digests == 2
    assert steps[-1].seq == player.inputs > 5
    assert b"hush" not in path.read_bytes()
    assert not [event for event in events if isinstance(event, RecordingEnded)]


@loops
def test_a_recording_file_that_cannot_be_created_is_an_error_of_start(tmp_path: Path) -> None:
    async def live() -> None:
        speaker = Speaker(record=tmp_path / "nowhere" / "r")
        with pytest.raises(FileNotFoundError):
            await speaker.start()
        await speaker.stop()

    asyncio.run(live())
