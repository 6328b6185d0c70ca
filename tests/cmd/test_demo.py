"""The demo as people run it: two programs, one round, changes, and a clean end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cmd.terminal import open_terminal, resize
from tests.support.ports import free_port
from tests.support.quickest import once_within
from tests.support.wait import eventually
from waggle.__main__ import main

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.program
PREFIXES = ["10.244.1.0/24", "198.51.100.10/32", "2001:db8:100::10/128", "fd00:10:244:1::/64"]
"""Of `waggle render` with the example."""
shared = pytest.mark.xdist_group("demo")
"""Of tests that share a demo."""


@pytest.fixture(name="examples")
def copied() -> Iterator[Path]:
    with copied_examples() as examples:
        yield examples


@contextlib.contextmanager
def copied_examples() -> Iterator[Path]:
    """Copy the examples, with ports that are free; the path of a socket has 108 octets at most."""
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        examples = Path(name) / "examples"
        shutil.copytree(ROOT / "examples", examples)
        port = free_port("127.0.0.2")
        for file in (
            "router.yaml",
            "quickstart/bgp.yaml",
            "metallb/bgp.yaml",
            "antrea/policy.yaml",
        ):
            path = examples / file
            path.write_text(path.read_text().replace("1790", str(port)))
        # The port on which the agent listens itself.
        policy = examples / "antrea" / "policy.yaml"
        policy.write_text(policy.read_text().replace("1179", str(free_port("::"))))
        yield examples


def arguments_of(examples: Path, *more: str, manifests: str = "quickstart") -> list[str]:
    """Return the command and arguments of a demo of these examples; its socket is beside them."""
    words = ["demo", *more, "--socket", str(examples.parent / "run" / "agent.sock")]
    words += ["--manifests", str(examples / manifests)]
    return [*words, "--router", str(examples / "router.yaml")]


def command(examples: Path, *more: str, manifests: str = "quickstart") -> list[str]:
    """Return the command line of a demo of these examples."""
    return [
        sys.executable,
        "-m",
        "waggle",
        *arguments_of(examples, *more, manifests=manifests),
    ]


def start(examples: Path, *more: str, manifests: str = "quickstart") -> subprocess.Popen[str]:
    """Start the demo off a terminal."""
    return subprocess.Popen(
        command(examples, *more, manifests=manifests),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def programs(examples: Path) -> list[str]:
    """Return the agents and routers that run on these examples, or with their agent socket."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        if str(examples.parent / "run") in " ".join(words) or str(examples) in " ".join(words):
            found.append(" ".join(words))
    return [text for text in found if "waggle_agent" in text or "waggle router" in text]


def gone(examples: Path) -> None:
    """Raise while one of the two programs runs."""
    assert programs(examples) == []


def ended_in_order(demo: subprocess.Popen[str], examples: Path) -> None:
    """Check that a demo ends after a signal, without an error, and leaves no program and no file."""
    _, errors = demo.communicate(timeout=60)
    assert (demo.returncode, errors) == (0, "")
    assert list((examples.parent / "run").glob("demo-*")) == []
    gone(examples)


@dataclass(frozen=True)
class Lines:
    """A demo off a terminal."""

    demo: subprocess.Popen[str]
    examples: Path
    port: int
    """On which its agent listens."""

    def until(self, *texts: str) -> list[str]:
        """Read until each text has been the beginning of a line; returns the lines."""
        assert self.demo.stdout is not None
        missing, found = set(texts), list[str]()
        for line in iter(self.demo.stdout.readline, ""):
            found.append(line.rstrip())
            missing = {text for text in missing if not line.startswith(text)}
            if not missing:
                return found
        raise AssertionError((missing, found))

    def change(self, address: str) -> None:
        """Change the IPv4 address of the Service, and wait for its route."""
        path = self.examples / "quickstart" / "services.yaml"
        path.write_text(re.sub(r"198\.51\.100\.\d+", address, path.read_text()))
        self.until(f"+ {address}/32")


def test_once_fails_at_its_timeout(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    router = examples / "router.yaml"
    router.write_text(router.read_text().replace("asn: 65001", "asn: 64999"))
    assert main(arguments_of(examples, "--once", "--timeout", "3")) == 1
    assert "the routes of the router differ from waggle render" in capsys.readouterr().err


def test_the_example_of_antrea_runs_on_loopback(
    examples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAGGLE_ENABLE_CELL", "antrea")
    assert main(arguments_of(examples, "--once", "-o", "json", manifests="antrea")) == 0
    output, errors = capsys.readouterr()
    assert errors == ""
    items = json.loads(output)["items"]
    assert [item["session"]["state"] for item in items if "session" in item] == ["Established"]
    routes = {item["route"]["prefix"]: item["route"] for item in items if "route" in item}
    assert routes["203.0.113.40/32"]["originObjects"]


def test_a_demo_without_routes_has_a_reason_and_ends_in_order_by_sigterm(examples: Path) -> None:
    """The reason is known to the agent alone: its dialect is off."""
    demo = start(examples, manifests="metallb")
    assert demo.stdout is not None
    lines = iter(demo.stdout.readline, "")
    assert next(lines) == f"Edit {examples / 'metallb' / 'bgp.yaml'} and watch. Ctrl-C ends it.\n"
    for text in lines:
        if text.startswith("! "):
            assert "metallb" in text
            assert "--enable-cell" in text
            break
    demo.send_signal(signal.SIGTERM)
    ended_in_order(demo, examples)


@pytest.fixture(scope="module", name="lines")
def off_a_terminal() -> Iterator[Lines]:
    """A demo off a terminal that tests share, whose agent listens; it ends by SIGHUP."""
    with copied_examples() as examples:
        port = free_port("127.0.0.1")
        path = examples / "quickstart" / "bgp.yaml"
        path.write_text(
            path.read_text().replace("localASN:", f"localPort: {port}\n      localASN:")
        )
        lines = Lines(start(examples), examples, port)
        try:
            lines.until(*(f"+ {prefix} via" for prefix in PREFIXES))
            yield lines
        finally:
            lines.demo.send_signal(signal.SIGHUP)
            ended_in_order(lines.demo, examples)


@shared
def test_a_demo_once_works_beside_an_agent_that_listens_and_leaves_its_session_alone(
    lines: Lines,
) -> None:
    """The agent is that of another demo, with a router of its own."""
    with copied_examples() as beside:
        output, errors = start(beside, "--once").communicate(timeout=60)
    assert errors == ""
    assert sorted(line.split()[0] for line in output.splitlines()) == PREFIXES
    with socket.create_connection(("127.0.0.1", lines.port), timeout=60):
        pass
    path = lines.examples / "quickstart" / "services.yaml"
    path.write_text(path.read_text().replace("2001:db8:100::10", "2001:db8:100::11"))
    shown = lines.until("+ 2001:db8:100::11/128")
    others = [line for line in shown if not line[1:].startswith(" 2001:db8:100::")]
    assert others == [], "the session of the first agent stayed up"
    path.write_text(path.read_text().replace("2001:db8:100::11", "2001:db8:100::10"))
    lines.until("+ 2001:db8:100::10/128")


@shared
def test_a_changed_manifest_is_shown(lines: Lines) -> None:
    once_within(1, lambda number: lines.change(f"198.51.100.{99 + number}"))


def test_a_port_in_use_is_an_immediate_error(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = int((examples / "router.yaml").read_text().split("port:")[1].split()[0])
    with socket.create_server(("127.0.0.2", port)):
        assert main(arguments_of(examples, "--once")) == 1
    assert f"cannot listen on 127.0.0.2 port {port}" in capsys.readouterr().err


class Screen:
    """A demo in a terminal of its own, and what it has drawn."""

    def __init__(
        self, examples: Path, columns: int, wrapper: Sequence[str] = (), term: str = "xterm"
    ) -> None:
        """``wrapper``: the first process of the terminal, which runs the demo."""
        self.here, there = open_terminal(columns)
        self.demo = subprocess.Popen(
            [*wrapper, *command(examples)],
            stdin=there,
            stdout=there,
            stderr=there,
            env={name: value for name, value in os.environ.items() if name != "COLUMNS"}
            | {"TERM": term},
            preexec_fn=lambda: os.login_tty(os.dup(0)),
        )
        os.close(there)

    def until(self, text: str) -> list[str]:
        """Read until a text was drawn; returns the lines since the screen was cleared last."""
        shown = ""
        deadline = time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < deadline, shown
            shown += os.read(self.here, 65536).decode()
        last = re.split(r"\x1b\[H|\x1b\[2J", shown)[-1]
        return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", last).splitlines()

    def end(self) -> None:
        """Wait for the end of the demo after a signal."""
        with contextlib.suppress(OSError):
            while os.read(self.here, 65536):
                pass
        assert self.demo.wait(60) == 0
        os.close(self.here)


def test_no_program_is_left_behind_by_a_demo_that_is_killed(examples: Path) -> None:
    """Its terminal cannot move its cursor, and has lines."""
    screen = Screen(examples, 100, term="dumb")
    screen.until("+ 198.51.100.10/32 via")
    screen.demo.kill()
    assert screen.demo.wait(60) == -signal.SIGKILL
    os.close(screen.here)
    eventually(lambda: gone(examples))


def test_the_end_of_the_terminal_ends_both_programs(examples: Path) -> None:
    # As make does: it gets SIGHUP, which the kernel sends to no other process, and waits.
    screen = Screen(examples, 100, ["sh", "-c", 'trap : HUP; "$@"; exit', "sh"])
    screen.until("Ctrl-C ends it")
    assert len(programs(examples)) == 2
    os.close(screen.here)
    screen.demo.wait(60)
    gone(examples)


@pytest.fixture(scope="module", name="screen")
def on_a_terminal() -> Iterator[Screen]:
    """A demo on a terminal of 120 columns that tests share; it ends by SIGINT."""
    with copied_examples() as examples:
        screen = Screen(examples, 120)
        try:
            screen.until("fd00:10:244:1::/64")
            yield screen
        finally:
            screen.demo.send_signal(signal.SIGINT)
            screen.end()
            gone(examples)


@shared
def test_the_screen_follows_the_size_of_the_terminal(screen: Screen) -> None:
    resize(screen.here, 60)
    # Frames from before the change may be read first; without a frame that fits the test times out.
    while any(len(line) > 60 for line in screen.until("Ctrl-C ends it")):
        pass
    resize(screen.here, 120)
    while all(len(line) <= 60 for line in screen.until("Ctrl-C ends it")):
        pass


@shared
def test_the_screen_is_given_back_while_the_demo_is_suspended_and_drawn_again(
    screen: Screen,
) -> None:
    screen.demo.send_signal(signal.SIGTSTP)
    screen.until("\x1b[?1049l")
    eventually(lambda: _check_suspended(screen.demo.pid))
    screen.demo.send_signal(signal.SIGCONT)
    screen.until("\x1b[?1049h")
    assert "fd00:10:244:1::/64" in "".join(screen.until("Ctrl-C ends it"))


def _check_suspended(pid: int) -> None:
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_demo_goes_on_in_the_background_until_it_is_stopped(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*more: str) -> tuple[int, str, str]:
        return main(arguments_of(examples, *more)), *capsys.readouterr()

    detached = start(examples, "--detach")
    shown, errors = detached.communicate(timeout=60)
    assert (detached.returncode, errors) == (0, "")
    assert shown.splitlines()[0].startswith("10.244.1.0/24 via ")
    assert shown.splitlines()[-1].endswith("waggle demo --stop ends it.")
    assert len(programs(examples)) == 2
    assert "a demo runs already" in run("--detach")[2]
    assert run("--once")[0] == 1
    assert run("--stop") == (0, "The demo is ended: the agent and the router.\n", "")
    gone(examples)
    assert run("--stop") == (1, "", "waggle demo: no demo runs\n")


def test_a_demo_in_the_background_that_cannot_start_is_an_error(examples: Path) -> None:
    (examples / "router.yaml").write_text("asn: [")
    demo = start(examples, "--detach")
    output, errors = demo.communicate(timeout=60)
    assert (demo.returncode, output) == (1, "")
    assert errors.startswith("waggle demo: ")
    gone(examples)
