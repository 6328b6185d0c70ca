"""A password is never printed, and a password that TCP MD5 cannot use is rejected (H14)."""

from __future__ import annotations

import json
import pickle

import msgspec
import pytest

from speaker.api import InvalidSecret, PeerConfig, Secret


def test_a_password_is_not_shown() -> None:
    secret = Secret("geheim")
    config = PeerConfig(name="p", address="10.0.0.1", password=secret)
    for text in (repr(secret), str(secret), f"{secret}", repr(config), str([config])):
        assert "geheim" not in text
    with pytest.raises(TypeError):
        msgspec.json.encode(config)
    with pytest.raises(TypeError):
        json.dumps({"password": secret})
    with pytest.raises(TypeError, match="not written anywhere"):
        pickle.dumps(secret)
    assert secret.reveal() == b"geheim"


def test_equal_passwords_are_equal() -> None:
    assert Secret("a") == Secret(b"a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert hash(Secret("a")) == hash(Secret("a"))


@pytest.mark.parametrize("value", ["", "x" * 81, "a\0b"])
def test_h14_a_password_that_cannot_be_used_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(InvalidSecret) as caught:
        Secret(value)
    assert not value or value not in str(caught.value)
