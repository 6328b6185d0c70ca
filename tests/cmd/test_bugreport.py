"""``waggle bugreport``: everything but secrets, of which some are planted in every place."""

from __future__ import annotations

import base64
import contextlib
import errno
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cells.api.test_client import answering, http
from tests.cmd.lab import NODE, routers
from tests.cmd.test_secrets import protected
from tests.support.agent import Agent
from tests.support.apiserver import BackgroundApiServer
from tests.support.certificates import authority_and_server
from tests.support.kinds import KINDS
from tests.support.ports import free_port
from tests.support.wait import eventually
from waggle.__main__ import main
from waggle.commands import bugreport
from waggle.commands.bugreport.redaction import REDACTED, Redaction, is_secret_name

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
        # A password of an object, where nothing marks it as one.
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
    names = {name.partition("/")[2] for name in files}
    assert {"host.json", "log/agent.log", "manifests/all.yaml.json"} <= names
    answers = (
        *("status", "process", "host", "cells", "health", "log-level", "peers", "bfd"),
        *("reconcilers", "intent", "explain", "history", "routes-kernel", "events", "metrics"),
        *("routes-advertised", "routes-received", "routes-available"),
    )
    agent = {name for name in names if name.startswith("agent/")}
    assert agent >= {f"agent/{answer}.json" for answer in answers}


@pytest.mark.program
def test_no_secret_of_a_running_agent_is_in_its_archive(
    plant: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each secret is in use: of the peer, the API server, the collector, the page and the probes."""
    endpoint = f"http://waggle:{plant()}@127.0.0.1:{free_port('127.0.0.1')}/?token={plant()}"
    certificate, _ = authority_and_server(tmp_path, "page")
    key = tmp_path / "page.key"
    plant.all += key.read_text().split("\n")[1:-2]
    for name in ("page-token", "http-token"):
        (tmp_path / name).write_text(plant())
    options = {
        "telemetry": {"otlpEndpoint": endpoint, "intervalSeconds": 0.1},
        "logging": {"level": "debug"},
        "http": {"address": "127.0.0.1:0", "tokenFile": str(tmp_path / "http-token")},
        "page": {
            "address": "127.0.0.1:0",
            "tokenFile": str(tmp_path / "page-token"),
            "certificate": str(certificate),
            "key": str(key),
        },
    }
    settings = tmp_path / "agent.yaml"
    settings.write_text(yaml.safe_dump({"cells": options}))
    token, password = plant(), plant()
    with BackgroundApiServer(KINDS) as server, routers(tmp_path, 1) as ports:
        server.require(token)
        for item in protected(ports[0], password):
            server.put(item)
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", token=token)
        agent = Agent(
            None,
            tmp_path / "agent",
            node=NODE,
            kubeconfig=kubeconfig,
            arguments=["--config", str(settings)],
        )
        # As in the Pod, whose environment has what the agent's has.
        monkeypatch.setenv("WAGGLE_OTLP_ENDPOINT", endpoint)
        agent.start()
        try:

            def has_met_the_secrets() -> None:
                assert [p["authentication"] for p in agent.ask("/v1/peers")] == ["TCP MD5"]
                assert "spans are lost" in str(agent.health())

            eventually(has_met_the_secrets, context=agent.daemon.tail)
            archive = tmp_path / "report.tar.gz"
            files = ("--config", str(settings), "--config", str(kubeconfig))
            log = ("--log", str(tmp_path / "agent" / "log"))
            words = ["bugreport", "--socket", str(agent.socket), *files, *log, "-O", str(archive)]
            assert main([*words, "-o", "json"]) == 0
        finally:
            agent.stop()
    printed = capsys.readouterr()
    packed = {name.partition("/")[2]: text for name, text in contents(archive.read_bytes()).items()}
    for answer in (
        "status",
        "intent",
        "explain",
        "history",
        "peers",
        "routes-available",
        "metrics",
    ):
        assert json.loads(packed[f"agent/{answer}.json"])["items"], answer
    assert {"log/log", "config/kubeconfig.json", "config/agent.yaml.json"} <= packed.keys()
    assert "TCP MD5" in packed["agent/peers.json"]
    kernel = [item for item in json.loads(printed.out)["items"] if "routes-kernel" in item["name"]]
    assert [item["error"] for item in kernel] == [bugreport.OFF]
    assert json.loads(packed["agent/events.json"])["kind"] == "EventList"
    assert "http://waggle:" in packed["host.json"]
    everything = "\n".join([*packed.values(), printed.out, printed.err])
    forms = [f for s in plant.all for f in (s, base64.b64encode(s.encode()).decode())]
    assert len(forms) > 12
    assert [form for form in forms if form in everything] == []


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


NESTED = """\
users:
- user:
    exec: {args: ["--secret", s3cr3t-a], env: [{name: AWS_SECRET_ACCESS_KEY, value: s3cr3t-b}]}
"""
DOCKER = base64.b64encode(json.dumps({"auths": {"r": {"password": "s3cr3t-c"}}}).encode()).decode()
PLACES: tuple[object, ...] = (
    {"command": ["app", "--password", "s3cr3t-d", "-p", "x"]},
    {"credentials": {"user": "u", "value": "s3cr3t-d"}, "passwords": {"alice": "s3cr3t-e"}},
    {"kind": "SecretList", "items": [{"data": {"k": "s3cr3t-f"}}]},
    {"kind": "ConfigMap", "data": {"kube": NESTED}},
    {"data": {"app.properties": "password = s3cr3t-g with s3cr3t-h\nport = 1"}},
    {"data": {"app.yaml": "password: |\n  s3cr3t-i\nport: 1"}},
    {"message": json.dumps({"detail": json.dumps({"password": "s3cr3t-j"})})},
    {"environment": {"OTEL_EXPORTER_OTLP_HEADERS": "x-team=s3cr3t-k"}},
    'Authorization: Digest username="bob", response="s3cr3t-l"',
    "Cookie: session=s3cr3t-m; csrf=s3cr3t-n",
    "isis password clear s3cr3t-o",
    "key-string s3cr3t-p",
    "ip ospf authentication-key s3cr3t-q",
    "password is s3cr3t-r",
    "https://s3cr3t-s-token-0123456789@192.0.2.1/x",
    ["ghp_s3cr3ts3cr3ts3cr3t"],
)


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_in_a_place_of_its_own(place: object) -> None:
    redaction = Redaction()
    redaction.learn(place)
    assert "s3cr3t" not in json.dumps(redaction.document(place))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({"kind": "Secret", "data": {"k": DOCKER}}, "seen s3cr3t-c in a log"),
        ({"kind": "Secret", "data": {"k": "czNjcjN0LWMK"}}, "with a line end in base64: s3cr3t-c"),
        ({"data": {"kube": NESTED}}, "seen s3cr3t-a and s3cr3t-b in a log"),
        ("jdbc:mysql://root:s3cr3t-c@db/x", "seen s3cr3t-c without its URL"),
        ("neighbor 192.0.2.1 password s3cr3t-c", "seen s3cr3t-c without its neighbor"),
    ],
)
def test_a_secret_that_was_found_is_removed_elsewhere(place: object, text: str) -> None:
    redaction = Redaction()
    redaction.learn(place)
    assert "s3cr3t" not in redaction.text(text)


def test_places_of_secrets_and_prose_stay() -> None:
    place = {
        "passwordSecret": {"name": "tor", "namespace": "x"},
        "text": "secretName: tor\nport: 1",
        "log": "password mismatch of 192.0.2.1",
    }
    redaction = Redaction()
    redaction.learn(place)
    assert redaction.document(place) == {**place, "log": "password [redacted] of 192.0.2.1"}
    assert redaction.text("checksum mismatch") == "checksum mismatch"
    assert redaction.text(redaction.text("token=s3cr3t-a x")) == "token=[redacted] x"


@pytest.mark.parametrize(
    "piece", ["x", "-password", "eyJ-", "--", "://a", "password='", "key ", "\\"]
)
def test_the_time_is_linear_in_a_line(piece: str) -> None:
    import time

    began = time.process_time()
    Redaction().text(piece * (100_000 // len(piece)))
    assert time.process_time() - began < 5  # a quadratic form takes a minute


def test_a_log_with_a_token_in_each_line_is_redacted_in_place() -> None:
    log = "\n".join(f"GET /x?token=s3cr3t-{number}" for number in range(20_000))
    redaction = Redaction()
    redaction.learn(log)
    assert "s3cr3t" not in redaction.text(log)


def report(tmp_path: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Write a report without an agent; returns the exit status and what it lists."""
    listed = io.StringIO()
    with contextlib.redirect_stdout(listed):
        status = main(["bugreport", "--socket", str(tmp_path / "none"), "-o", "jsonl", *words])
    return status, [json.loads(line) for line in listed.getvalue().splitlines()]


def test_the_archive_follows_no_link_and_keeps_no_file_that_another_user_has_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim, link, before = tmp_path / "victim", tmp_path / "link.tgz", tmp_path / "before.tgz"
    victim.write_text("kept")
    link.symlink_to(victim)
    assert report(tmp_path, "-O", str(link))[0] == 1
    assert "link.tgz: is a symbolic link" in capsys.readouterr().err
    assert victim.read_text() == "kept"
    before.touch(0o666)
    with before.open("rb") as opened:
        report(tmp_path, "-O", str(before))
        assert opened.read() == b""
    assert before.stat().st_mode & 0o777 == 0o600
    assert contents(before.read_bytes())
    assert report(tmp_path, "-O", "/dev/full")[0] == 1
    assert "/dev/full: No space left on device" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before.tgz", "link.tgz", "victim"]


def test_files_that_are_not_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bugreport, "MAX_FILE_OCTETS", 1000)
    files = {
        "bomb": "a: &a [x, x]\n" + "".join(f"{n}: &{n} [{'*a,' * 300}]\n" for n in "bc"),
        "broken": "kind: Secret\ndata: {k: czNjcjN0\n",
        "text": "a: [\n",
    }
    words = []
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
        words += ["--config", str(tmp_path / f"{name}.yaml")]
    archive = tmp_path / "report.tgz"
    _, items = report(tmp_path, *words, *words[-2:], "-O", str(archive))
    errors = {item["name"]: item.get("error") for item in items}
    assert errors["config/bomb.yaml"] == "larger than 1,000 octets"
    assert "line 3: not YAML" in str(errors["config/broken.yaml"])
    assert errors["config/text.yaml"] is None
    assert errors["2-config/text.yaml"] is None
    assert report(tmp_path, "-f", str(tmp_path / "typo"))[0] == 2


def test_a_terminal_gets_no_archive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert main(["bugreport", "-O", "-"]) == 2
    assert "no text for a terminal" in capsys.readouterr().err


def test_an_entry_of_a_directory_that_cannot_be_read_is_named_and_the_others_are_included(
    tmp_path: Path,
) -> None:
    manifests, archive = tmp_path / "manifests", tmp_path / "report.tgz"
    (manifests / "below").mkdir(parents=True)
    (manifests / "below/good.yaml").write_text("kind: A\n")
    (manifests / "long.yaml").symlink_to("n" * 300)
    (manifests / "loop.yaml").symlink_to("loop.yaml")
    (manifests / "gone.yaml").symlink_to("nowhere")
    (manifests / "out.yaml").symlink_to("/etc/hostname")
    os.mkfifo(manifests / "pipe.yaml")
    _, items = report(tmp_path, "-f", str(manifests), "-O", str(archive))
    errors = {
        item["name"]: item.get("error") for item in items if item["name"].startswith("manifests")
    }
    assert errors == {
        "manifests/below/good.yaml.json": None,
        "manifests/gone.yaml": "is a link to a file that does not exist",
        "manifests/long.yaml": "cannot be read: File name too long",
        "manifests/loop.yaml": "cannot be read: Too many levels of symbolic links",
        "manifests/out.yaml": "is a link out of the directory, and not followed",
        "manifests/pipe.yaml": "is not a regular file",
    }
    names = {name.partition("/")[2] for name in contents(archive.read_bytes())}
    assert "manifests/below/good.yaml.json" in names


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP, errno.ESTALE]
)
@pytest.mark.parametrize("call", ["stat", "open", "scandir"])
def test_any_error_of_the_system_is_that_of_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    manifests = tmp_path / "manifests"
    (manifests / "bad.yaml").mkdir(parents=True)
    for name in ("bad.yaml/bad.yaml", "good.yaml"):
        (manifests / name).write_text("kind: A\n")
    original = getattr(os, call)

    def failing(path: Any, *words: Any, **more: Any) -> Any:  # noqa: ANN401  of os
        if str(path).endswith("bad.yaml"):
            raise OSError(number, os.strerror(number))
        return original(path, *words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        _, items = report(tmp_path, "-f", str(manifests), "-O", str(tmp_path / "report.tgz"))
    errors = {
        item["name"]: item.get("error") for item in items if item["name"].startswith("manifests")
    }
    assert errors.pop("manifests/good.yaml.json") is None
    assert set(errors.values()) == {f"cannot be read: {os.strerror(number)}"}


@pytest.mark.parametrize("flag", ["-f", "--config", "--log"])
def test_a_named_file_that_cannot_be_read_is_named_and_the_archive_has_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    loop, log, archive = tmp_path / "loop", tmp_path / "agent.log", tmp_path / "report.tgz"
    loop.symlink_to("loop")
    log.write_text("a line\n")
    status, items = report(tmp_path, flag, str(loop), "--log", str(log), "-O", str(archive))
    assert status == 1
    reason = "cannot be read: Too many levels of symbolic links"
    assert [item["name"].partition("/")[2] for item in items if item.get("error") == reason] == [
        "loop"
    ]
    assert f"waggle bugreport: {loop}: {reason}\n" in capsys.readouterr().err
    assert any(name.endswith("log/agent.log") for name in contents(archive.read_bytes()))


def test_the_end_of_a_log_is_included_with_octets_that_are_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bugreport, "MAX_LOG_OCTETS", 9)
    log, archive = tmp_path / "agent.log", tmp_path / "report.tgz"
    log.write_bytes(b"0123456789\nlast\xff\xfe\n")
    report(tmp_path, "--log", str(log), "-O", str(archive))
    files = contents(archive.read_bytes())
    (text,) = [text for name, text in files.items() if name.endswith("log/agent.log")]
    assert text == "9\nlast\ufffd\ufffd\n"
