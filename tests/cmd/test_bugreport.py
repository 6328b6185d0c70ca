"""``waggle bugreport``: everything but secrets, of which some are planted in every place."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cells.api.test_client import answering, http
from waggle.__main__ import main
from waggle.redaction import REDACTED, Redaction, is_secret_name

NUMBERS = iter(range(1000, 9999))
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"


@pytest.fixture(name="plant")
def planted() -> Any:  # noqa: ANN401  a function with an attribute
    """Return a function that makes another secret each time; ``.all`` are the secrets."""

    def plant(form: str = "s3cr3t-{}") -> str:
        secret = form.format(next(NUMBERS))
        plant.all.append(secret)  # type: ignore[attr-defined]
        return secret

    plant.all = []  # type: ignore[attr-defined]
    return plant


def objects(plant: Any) -> list[dict[str, Any]]:  # noqa: ANN401  a function with an attribute
    """Return objects with a secret in each place where users have them."""
    applied = {"kind": "Secret", "stringData": {"password": plant()}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "tor",
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied)
                },
            },
            "data": {"password": base64.b64encode(plant().encode()).decode(), "x": plant()},
            "stringData": {"note": plant()},
        },
        {
            "kind": "BGPPeer",
            "metadata": {"name": "tor"},
            "spec": {"password": plant(), "passwordSecret": {"name": "tor"}},
        },
        {
            "kind": "FRRConfiguration",
            "metadata": {"name": "raw"},
            "spec": {"raw": {"rawConfig": f"neighbor 192.0.2.1 password {plant()}\n"}},
        },
        {
            "kind": "ConfigMap",
            "metadata": {"name": "c", "annotations": {"note": f"token={plant()}"}},
            "data": {"app.conf": f'url = "https://u:{plant()}@example.org"\napiKey: {plant()}\n'},
        },
        {
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"note": "no Secret shop/tor-key exists"}},
            "spec": {
                "containers": [
                    {
                        "env": [{"name": "DB_PASSWORD", "value": plant()}],
                        "args": [f"--token={plant()}"],
                    }
                ]
            },
        },
    ]


def test_no_planted_secret_is_in_the_archive(
    plant: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    all_objects = objects(plant)
    (manifests / "all.yaml").write_text(yaml.safe_dump_all(all_objects))
    (manifests / "broken.yaml").write_text(f"password: [{plant()}\n")
    config = {"cells": {"http": {"bearerToken": plant()}, "x": {"clientKeyData": plant()}}}
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("WAGGLE_API_TOKEN", plant())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"Authorization=Basic {plant('c2VjcmV0{}')}")
    monkeypatch.setenv("HOME_MADE", plant())
    key = (
        f"-----BEGIN RSA PRIVATE KEY-----\n{plant('MIIEpAIB{}AAK')}\n-----END RSA PRIVATE KEY-----"
    )
    plant.all.append(JWT)
    lines = [
        f'level=info msg="request" authorization="Bearer {plant("abc.{}-def")}"',
        f"level=info {JWT} GET https://admin:{plant()}@192.0.2.1/x?access_token={plant()}",
        json.dumps({"msg": "x", "password": plant()}),
        f"neighbor 192.0.2.1 password 7 {plant()}",
        # A password of an object, where nothing says that it is one.
        f"dial failed with {all_objects[1]['spec']['password']} in the text",
        key,
    ]
    (tmp_path / "agent.log").write_text("\n".join(lines))
    answer = {
        "apiVersion": "cli.waggle/v1", "kind": "StatusList", "errors": [],
        "items": [{"node": "n", "message": f"rejected: password {plant()}", "token": plant()}],
    }  # fmt: skip
    archive = tmp_path / "report.tar.gz"
    with answering(tmp_path / "api", http(answer)):
        status = main(
            [
                *("bugreport", "-f", str(manifests), "--config", str(tmp_path / "agent.yaml")),
                *("--log", str(tmp_path / "agent.log"), "-O", str(archive)),
                *("--socket", str(tmp_path / "api"), "-o", "json"),
            ]
        )
    printed = capsys.readouterr()
    assert status == 0, printed.err
    files = contents(archive.read_bytes())
    everything = "\n".join([*files, *files.values(), printed.out, printed.err])
    assert len(plant.all) > 20
    assert [secret for secret in plant.all if secret in everything] == []
    coded = [base64.b64encode(secret.encode()).decode() for secret in plant.all]
    assert [secret for secret in coded if secret in everything] == []
    # What is no secret is there.
    for text in (
        "neighbor 192.0.2.1 password",
        "https://u:",
        "DB_PASSWORD",
        '"name": "tor"',
        "no Secret shop/tor-key",
    ):
        assert text in everything
    assert archive.stat().st_mode & 0o777 == 0o600
    assert {"host.json", "log/agent.log", "agent/status.json", "manifests/all.yaml.json"} <= {
        name.partition("/")[2] for name in files
    }


def contents(archive: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {
            info.name: file.read().decode()
            for info in files
            if (file := files.extractfile(info)) is not None
        }


def test_without_an_agent_the_archive_has_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "report.tar.gz"
    words = ["bugreport", "--socket", str(tmp_path / "none"), "-O", str(archive)]
    assert main(words) == 1
    assert "no agent runs here" in capsys.readouterr().out
    assert [name.partition("/")[2] for name in contents(archive.read_bytes())] == ["host.json"]
    assert main([*words, "--log", str(tmp_path / "missing")]) == 2


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *(
            (name, True)
            for name in ("password", "WAGGLE_TOKEN", "bearerToken", "md5Key", "tls.key")
        ),
        *((name, True) for name in ("client-key-data", "privateKey", "apiKey", "Authorization")),
        *((name, False) for name in ("keepaliveSeconds", "peerAddress", "secretName", "tokenFile")),
        *((name, False) for name in ("secretsNamespace", "passwordSecretRef", "monkey", "asPath")),
    ],
)
def test_the_name_of_a_secret(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


@given(st.text(st.characters(codec="utf-8"), min_size=4).filter(lambda t: t.strip() == t))
def test_a_password_is_nowhere_else(password: str) -> None:
    redaction = Redaction()
    redaction.learn({"password": password})
    assert password not in redaction.text(f"before {password} behind").replace(REDACTED, "")
