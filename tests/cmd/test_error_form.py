"""Errors of all programs have one form: the program, a sentence, where it helps a hint; no Python."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.cmd.terminal import environment
from waggle.__main__ import main as run_waggle
from waggle_agent.__main__ import main as run_agent
from waggle_bfd.__main__ import main as run_bfd
from waggle_kernel.__main__ import main as run_kernel
from waggle_operator.__main__ import main as run_operator

pytestmark = pytest.mark.program

PYTHON_TEXT = re.compile(
    r"Traceback|Errno|fromhex|Expected|`|\b(int|str|float|NoneType|KeyError|ValueError)\b"
    r"|does not appear|codec|[a-z]+_[a-z]+:"
)


MAINS: Mapping[str, Callable[[list[str]], int]] = {
    "waggle": run_waggle,
    "waggle-agent": run_agent,
    "waggle-operator": run_operator,
    "waggle-bfd": run_bfd,
    "waggle-kernel": run_kernel,
}


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a program in this process; returns its exit status and what it prints."""
    try:
        status = MAINS[words[0]](words[1:])
    except SystemExit as end:
        status = int(end.code or 0)
    return status, *capsys.readouterr()


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, env=environment() | variables, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("waggle decode zz", 2),
        ("waggle decode fff", 2),
        ("waggle decode --pcap none", 2),
        ("waggle decode --jsonl none", 2),
        ("waggle router -c none", 2),
        ("waggle router -c bad.yaml", 2),
        ("waggle router check wrong.yaml", 2),
        ("waggle router", 2),
        ("waggle router announce 10.0.0.0/8", 2),
        ("waggle router announce 10.0.0.0/8 --med x", 2),
        ("waggle router check field.yaml", 2),
        ("waggle router peers --socket none", 1),
        ("waggle replay none", 2),
        ("waggle replay bad.yaml", 2),
        ("waggle render -f none --node n -o table", 2),
        ("waggle convert -f none -o table", 2),
        ("waggle crds Nothing -o name", 4),
        ("waggle peers --socket none", 1),
        ("waggle explain -f none --node n", 2),
        ("waggle demo --manifests none", 2),
        ("waggle demo --socket ./run/s --stop", 1),
        ("waggle-agent --config none", 2),
        ("waggle-agent --config bad.yaml", 2),
        ("waggle-agent --node-name n --ready-timeout-seconds soon", 2),
        ("waggle-agent --node-name n --ready-timeout-seconds -5", 2),
        ("waggle-agent --enable-cell nothing", 2),
        ("waggle-agent --advertise-allow 1/33", 2),
        ("waggle-agent --advertise-deny 10.0.0.0/33", 2),
        ("waggle-agent --node-address x", 2),
        ("waggle-agent --node-name ''", 2),
        ("waggle-agent --node-name n --kubeconfig ''", 2),
        ("waggle-agent --drain-taint 'bad key'", 2),
        ("waggle-agent --config date.yaml", 2),
        ("waggle-agent --config deep.yaml", 2),
        ("waggle-agent --config big.yaml", 2),
        ("waggle-agent --node-name n --manifests . --api-socket ./s --record-file none/r", 1),
        ("waggle router check deep.yaml", 2),
        ("waggle router check big.yaml", 2),
        ("waggle render --drain-taint 'bad key' -f . --node n -o table", 2),
        ("waggle demo --timeout -1", 2),
        ("waggle demo --timeout nan", 2),
        ("waggle demo --screenshot x.svg", 2),
        ("waggle demo --socket ./run/s --once --router binary.yaml", 1),
        ("waggle demo --socket ./run/s --once --router .", 1),
        (f"waggle peers --socket {'x' * 200}", 1),
        ("waggle-operator --config none", 2),
        ("waggle-operator --enable-cell nothing", 2),
        ("waggle-operator", 2),
        ("waggle plan -f none --from none", 2),
        ("waggle plan -f . --from . --max-withdraw x", 2),
        ("waggle plan -f . --add", 2),
        ("waggle peers nothing", 2),
        ("waggle peers clear", 2),
        ("waggle routes nothing --watch", 2),
        ("waggle nothing", 2),
        ("waggle routes --within x", 2),
        ("waggle explain 10.0.0.0/33 -f . --node n", 2),
        ("waggle decode ff --jsonl none", 2),
        ("waggle decode --jsonl none --ibgp", 2),
        ("waggle replay none --until 0", 2),
        ("waggle router -c none --record-limit -1", 2),
        ("waggle-bfd", 2),
        ("waggle-bfd --socket s --least-interval nan", 2),
        ("waggle-bfd --socket s --alone -1", 2),
        ("waggle-bfd --listener -1", 2),
        ("waggle-bfd --listener 99999", 1),
        ("waggle-bfd --socket bad.yaml/s", 1),
        ("waggle-kernel --listener -1", 2),
        ("waggle-kernel --listener 99999", 1),
        ("waggle-kernel --socket s --verify-interval soon", 2),
        ("waggle-kernel --socket bad.yaml/s", 1),
        ("waggle-agent --nothing", 2),
        ("waggle router routes --nothing", 2),
    ],
)
def test_an_error_is_the_program_and_a_sentence(
    command: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.yaml").write_text("a: [\n")
    (tmp_path / "wrong.yaml").write_text("asn: 99999999999\nrouterID: 192.0.2.1\n")
    field = "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: 192.0.2.9, holdTime: 2}]\n"
    (tmp_path / "field.yaml").write_text(field)
    (tmp_path / "date.yaml").write_text("cells: 2024-99-99\n")
    (tmp_path / "deep.yaml").write_text("[" * 100_000)
    (tmp_path / "big.yaml").write_text(f"cells: {'9' * 5000}\n")
    (tmp_path / "binary.yaml").write_bytes(bytes(range(128, 256)))
    words = shlex.split(command)
    # A start costs a while, and matters where a daemon runs, or the depth of its stack does.
    if "deep" in command or (status == 1 and words[0] != "waggle"):
        done = run(words, tmp_path)
        printed = (done.returncode, done.stdout, done.stderr)
    else:
        monkeypatch.chdir(tmp_path)
        printed = answer(words, capsys)
    assert printed[:2] == (status, "")
    (line,) = printed[2].splitlines()
    assert re.match(rf"{words[0]}( [a-z]+)*: ", line)
    assert not PYTHON_TEXT.search(line), line


@pytest.mark.parametrize("program", ["waggle", "waggle-agent", "waggle-operator"])
def test_the_programs_import_nothing_from_the_current_folder(program: str, tmp_path: Path) -> None:
    for folder in ("resources", "cells", "statedb", "yaml"):
        (tmp_path / folder).mkdir()
        text = f"raise SystemExit('{folder} is imported from here')\n"
        (tmp_path / folder / "__init__.py").write_text(text)
    done = run([program, "--help"], tmp_path, PYTHONPATH=".")
    assert (done.returncode, done.stderr) == (0, "")
    done = run([sys.executable, "-m", program.replace("-", "_"), "--help"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "command", ["waggle peers", "waggle --version", "waggle render -f . --node n"]
)
def test_a_closed_standard_output_is_an_error(command: str, tmp_path: Path) -> None:
    done = run(["sh", "-c", f"{command} >&-"], tmp_path)
    assert (done.returncode, done.stderr) == (1, "waggle: standard output is closed\n")


def test_no_file_or_connection_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """Lines of the log would be sent to a router."""
    source = (
        "from cells.arguments import open_standard_streams; import os; open_standard_streams(); "
        "found = os.open('found', os.O_CREAT | os.O_WRONLY); os.write(found, b'%d' % found)"
    )
    done = run(["sh", "-c", f'{sys.executable} -c "{source}" <&- >&- 2>&-'], tmp_path)
    assert done.returncode == 0
    assert int((tmp_path / "found").read_text()) > 2


def test_the_current_folder_may_be_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = run(["sh", "-c", "rmdir ../gone && waggle check -f ."], gone)
    assert done.returncode == 2
    assert done.stderr == "waggle check: .: there is no such file or directory\n"


def test_manifests_in_a_folder_called_resources_are_rendered(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "__init__.py").write_text("")
    (tmp_path / "resources" / "n.yaml").write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n}}"
    )
    words = ["waggle", "render", "-f", "resources", "--node", "n"]
    assert run(words, tmp_path, PYTHONPATH=".").returncode == 0


def test_the_operator_ignores_variables_of_the_agent_and_no_others(tmp_path: Path) -> None:
    variables = {"WAGGLE_NODE_NAME": "n", "WAGGLE_API_SOCKET": "s", "WAGGLE_MANIFESTS": "m"}
    done = run(["waggle-operator"], tmp_path, **variables)
    assert "no cluster: set --kubeconfig FILE" in done.stderr
    done = run(["waggle-operator"], tmp_path, WAGGLE_NODE_NANE="n")
    assert "WAGGLE_NODE_NANE: unknown variable (did you mean WAGGLE_NODE_NAME?)" in done.stderr


def test_a_plain_user_without_a_session_has_a_usable_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cells.api.agent_socket import default_path

    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert default_path() == Path("/tmp/waggle-54321/agent.sock")  # noqa: S108
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_path() == tmp_path / "waggle" / "agent.sock"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_path() == Path("/run/waggle/agent.sock")
