"""The webhook's certificate over its life, as an API server with the published authorities sees it."""

from __future__ import annotations

import base64
import datetime as dt
import ssl
from pathlib import Path

import msgspec
import pytest

from resources.kubernetes.certificates import (
    AUTHORITY_LIFETIME,
    AUTHORITY_RENEWAL,
    LIFETIME,
    RENEWAL,
    Certificates,
    due,
    from_secret,
)

NAMES = ("waggle-webhook.kube-system.svc", "127.0.0.1")
NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


def step(
    stored: Certificates | None, now: dt.datetime = NOW, *, published: bool = True
) -> Certificates | None:
    return due(stored, now, NAMES, published=published)


@pytest.fixture(scope="module")
def first() -> Certificates:
    made = step(None)
    assert made is not None
    return made


def trusts(authorities: str, served: Certificates, tmp_path: Path, name: str = NAMES[0]) -> bool:
    """Complete a TLS handshake between a client with authorities and a server."""
    path = tmp_path / "chain.pem"
    path.write_text(served.key + served.certificate)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    client = ssl.create_default_context(cadata=authorities)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return ours.version() is not None


def test_the_first_certificate_is_trusted_by_its_names_alone(
    first: Certificates, tmp_path: Path
) -> None:
    for name in NAMES:
        assert trusts(first.authorities, first, tmp_path, name)
    assert not trusts(first.authorities, first, tmp_path, "elsewhere.svc")


def test_nothing_is_due_before_the_renewal(first: Certificates) -> None:
    assert step(first) is None
    assert step(first, first.end - RENEWAL - DAY) is None


def test_a_clock_that_is_set_back_a_day_renews_nothing(first: Certificates) -> None:
    assert step(first, NOW - DAY) is None


def test_a_certificate_is_renewed_by_the_same_authority(
    first: Certificates, tmp_path: Path
) -> None:
    now = first.end - RENEWAL + DAY
    renewed = step(first, now)
    assert renewed is not None
    assert renewed.authorities == first.authorities
    assert renewed.end == first.end - RENEWAL + DAY + LIFETIME
    assert step(renewed, now) is None


def test_other_names_are_another_certificate(first: Certificates) -> None:
    renewed = due(first, NOW, ("other.svc",), published=True)
    assert renewed is not None
    assert renewed.certificate != first.certificate


def test_a_new_authority_is_published_before_it_issues(first: Certificates, tmp_path: Path) -> None:
    now = NOW + AUTHORITY_LIFETIME - AUTHORITY_RENEWAL + DAY
    stored = msgspec.structs.replace(first)
    both = step(stored, now)
    assert both is not None
    assert both.certificate == first.certificate, "the former authority's certificate is served"
    assert both.authorities.endswith(first.authorities)
    assert trusts(both.authorities, first, tmp_path)
    assert step(both, now, published=False) is None
    issued = step(both, now, published=True)
    assert issued is not None
    assert issued.authorities == both.authorities, "another replica may serve the former one"
    assert issued.certificate != first.certificate
    assert not trusts(first.authorities, issued, tmp_path)
    assert step(issued, now) is None


def test_a_secret_holds_it_and_gives_it_back(first: Certificates) -> None:
    assert from_secret(first.data) == first


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("value", [None, "", "????", "bm90IFBFTQ=="])
def test_a_secret_that_cannot_be_read_is_as_if_there_were_none(
    first: Certificates, field: str, value: str | None
) -> None:
    data: dict[str, object] = {**first.data, field: value}
    assert from_secret(data) is None
    assert from_secret({name: v for name, v in data.items() if name != field}) is None


UNSUPPORTED = """\
-----BEGIN PRIVATE KEY-----
ME4CAQAwEAYHKoZIzj0CAQYFK4EEAAYENzA1AgEBBA5VJy0mLWMjzF/A2aIdvqEg
Ax4ABK3pdj92csnuuOJYqN2QJ/R8Hiv+GnUrjNDy/pY=
-----END PRIVATE KEY-----
"""
"""Of the curve secp112r1: a key that openssl makes, and no server presents."""


@pytest.mark.parametrize("field", ["ca.key", "tls.key"])
def test_a_key_that_no_server_presents_is_none(first: Certificates, field: str) -> None:
    """The job of the webhook would fail for good, and end the operator."""
    data = {**first.data, field: base64.b64encode(UNSUPPORTED.encode()).decode()}
    assert from_secret(data) is None


def test_keys_are_not_shown(first: Certificates) -> None:
    assert "KEY" not in repr(first)
    assert "KEY" not in f"{first}"
