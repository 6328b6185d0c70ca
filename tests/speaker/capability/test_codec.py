"""Capabilities to and from octets (RFC 5492): what impossible ones come to (H25)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.capability import (
    AddPath,
    Fqdn,
    Ignored,
    SoftwareVersion,
    Unknown,
    decode_capabilities,
    encode_capabilities,
)
from speaker.errors import EncodingError, Truncated
from speaker.iana import Family


@given(st.binary(max_size=80))
def test_h25_any_octets_are_capabilities_or_lengths_that_do_not_add_up(data: bytes) -> None:
    try:
        found = decode_capabilities(data)
    except Truncated:
        return
    assert all(str(capability) for capability in found)
    kept = [c for c in found if not isinstance(c, AddPath)]
    assert decode_capabilities(encode_capabilities(kept)) == kept


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (1, b""),
        (1, b"\0\1\0"),
        (2, b"x"),
        (3, b""),
        (5, b"\0\1\0\1\0"),
        (6, b"x"),
        (9, b""),
        (9, b"\0\0"),
        (64, b""),
        (64, b"\0\0\0"),
        (65, b"\0\0"),
        (69, b"\0\1\1"),
        (71, bytes(6)),
        (73, b"\xff"),
        (75, b"\x41x"),
    ],
)
def test_h25_a_known_capability_with_an_impossible_value_is_ignored(
    code: int, value: bytes
) -> None:
    (found,) = decode_capabilities(bytes((code, len(value))) + value)
    assert isinstance(found, Ignored)
    assert found.code == code


def test_an_undefined_add_path_mode_is_ignored_by_itself() -> None:
    """RFC 7911 section 4."""
    (found,) = decode_capabilities(b"\x45\x08\0\1\1\4\0\2\1\3")
    assert found == AddPath(((Family(2, 1), 3),))


def test_h50_names_of_a_peer_are_escaped_and_bounded() -> None:
    name = b"\x1b[31mevil\n"
    (fqdn,) = decode_capabilities(bytes((73, len(name) + 2, len(name))) + name + b"\0")
    assert isinstance(fqdn, Fqdn)
    assert fqdn.hostname == "\\x1b[31mevil\\n"
    version = b"v" * 200
    (software,) = decode_capabilities(bytes((75, 201, 200)) + version)
    assert isinstance(software, SoftwareVersion)
    assert len(software.version) == 64


def test_a_value_that_does_not_fit_is_an_encoding_error() -> None:
    with pytest.raises(EncodingError):
        encode_capabilities([Unknown(200, bytes(256))])
