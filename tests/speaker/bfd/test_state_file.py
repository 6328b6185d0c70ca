"""What outlives a process, however it ended."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from speaker.bfd.session_values import Diagnostic, Saved, SessionKey, State
from speaker.bfd.state_file import MAGIC, SLOT_OCTETS, StateFile

SAVED = Saved(
    SessionKey("fe80::1", "fe80::2", "eth0"),
    State.UP,
    Diagnostic.NONE,
    11,
    12,
    State.UP,
    0,
    50_000,
    60_000,
    3,
    0,
    True,
    1000,
    50_000,
)


def of(number: int) -> Saved:
    return replace(SAVED, key=SessionKey(f"10.0.{number >> 8}.{number & 255}", "10.1.0.1"))


def test_the_next_process_reads_what_this_one_wrote(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state")
    assert file.read() == ()
    for number in range(200):
        file.write(of(number))
    file.write(replace(of(7), state=State.DOWN))
    file.write_sequence(of(8).key, 4_000_000_000)
    file.remove(of(9).key)
    # The process was killed: nothing is closed.
    states = {state.key: state for state in StateFile(tmp_path / "state").read()}
    assert len(states) == 199
    assert states[of(7).key].state is State.DOWN
    assert states[of(8).key].transmit_sequence == 4_000_000_000
    assert states[of(10).key] == of(10)


def test_a_state_of_a_release_without_source_ports_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(state: Saved) -> bytes:
        fields = msgspec.structs.asdict(state)
        del fields["source_port"]
        return msgspec.msgpack.encode(fields)

    file = StateFile(tmp_path / "state")
    file.read()
    monkeypatch.setattr(file, "_encode", without)
    file.write(SAVED)
    assert StateFile(tmp_path / "state").read() == (replace(SAVED, source_port=0),)


def test_the_longest_state_fits_a_slot(tmp_path: Path) -> None:
    address, most = "fe80:1111:2222:3333:4444:5555:6666:7777", 0xFFFF_FFFF
    key = SessionKey(address, address, "fifteen-octets!", multihop=True)
    ours = (key, State.UP, Diagnostic.REVERSE_CONCATENATED_PATH_DOWN, most)
    state = Saved(*ours, most, State.UP, 31, most, most, 255, most, True, most, 65535)
    file = StateFile(tmp_path / "state")
    file.read()
    file.write(state)
    assert StateFile(tmp_path / "state").read() == (state,)


def test_slots_are_used_again(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state")
    file.read()
    for number in range(1000):
        file.write(of(number))
        file.remove(of(number).key)
    assert (tmp_path / "state").stat().st_size == len(MAGIC) + 64 * SLOT_OCTETS


@pytest.mark.parametrize("offset", [0, 1, 4, 12, 40, 100])
def test_a_slot_that_was_cut_short_is_not_read(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "state"
    file = StateFile(path)
    file.read()
    file.write(of(1))
    file.write(of(2))
    octets = bytearray(path.read_bytes())
    octets[len(MAGIC) + 63 * SLOT_OCTETS + offset] ^= 0xFF
    path.write_bytes(octets)
    assert StateFile(path).read() == (of(2),)


@pytest.mark.parametrize("content", [b"", b"x", b"something else entirely", MAGIC[:-1] + b"x"])
def test_a_file_of_something_else_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    file = StateFile(path)
    assert file.read() == ()
    file.write(SAVED)
    assert StateFile(path).read() == (SAVED,)


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    StateFile(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600


def test_a_state_that_fits_no_slot_is_not_kept_and_harms_no_other(tmp_path: Path) -> None:
    """The VRF of an object may have any name: no kernel has a device of that one."""
    file = StateFile(tmp_path / "state")
    file.read()
    file.write(SAVED)
    file.write(replace(SAVED, key=SessionKey("192.0.2.1", "", "v" * SLOT_OCTETS)))
    assert StateFile(tmp_path / "state").read() == (SAVED,)


def test_the_memory_of_all_slots_is_there_before_they_are_written(tmp_path: Path) -> None:
    """The kernel ends a process that writes to a page which a full file system cannot give."""
    file = StateFile(tmp_path / "state")
    file.read()
    for count in range(3):
        status = (tmp_path / "state").stat()
        assert status.st_blocks * 512 >= status.st_size
        for number in range(count * 64, (count + 1) * 64):
            file.write(of(number))
    file.close()


def test_a_session_beyond_the_memory_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = StateFile(tmp_path / "state")
    file.read()
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        for number in range(65):
            file.write(of(number))
        assert file.error is not None
        file.write(replace(of(7), state=State.DOWN))
        file.write_sequence(of(64).key, 7)
        file.remove(of(64).key)
        with pytest.raises(OSError, match="No space left"):
            StateFile(tmp_path / "other")
    assert len(StateFile(tmp_path / "state").read()) == 64
    file.write(of(64))
    assert file.error is None
    assert len(StateFile(tmp_path / "state").read()) == 65
    file.close()
