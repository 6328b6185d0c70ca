"""The file in which a dialect's state survives a restart: used whole, or refused with the reason."""

import msgspec
import pytest

from cells.state.dialect_states import decode, encode
from resources.state_file import StateFileError

OCTETS = encode(b'{"a": [1, 2, 3]}', "n1", "ants")


def test_a_file_is_read_back() -> None:
    assert decode(OCTETS, "n1", "ants") == b'{"a": [1, 2, 3]}'


@pytest.mark.parametrize("end", range(len(OCTETS)))
def test_a_truncated_file_is_refused(end: int) -> None:
    with pytest.raises(StateFileError):
        decode(OCTETS[:end], "n1", "ants")


@pytest.mark.parametrize("at", range(len(OCTETS)))
def test_a_damaged_file_is_refused(at: int) -> None:
    damaged = bytearray(OCTETS)
    damaged[at] ^= 0x01
    with pytest.raises(StateFileError):
        decode(bytes(damaged), "n1", "ants")


@pytest.mark.parametrize(
    ("node", "dialect", "reason"),
    [("n2", "ants", "of another node: 'n1'"), ("n1", "bees", "of another dialect: 'ants'")],
)
def test_a_file_of_another_node_or_dialect_is_refused(node: str, dialect: str, reason: str) -> None:
    with pytest.raises(StateFileError, match=reason):
        decode(OCTETS, node, dialect)


def test_a_file_of_a_later_release_is_refused() -> None:
    line, _, rest = OCTETS.partition(b"\n")
    head = msgspec.json.decode(line) | {"format": "waggle-dialect-state/2"}
    with pytest.raises(StateFileError, match="of another format: 'waggle-dialect-state/2'"):
        decode(msgspec.json.encode(head) + b"\n" + rest, "n1", "ants")
