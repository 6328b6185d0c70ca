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
from pathlib import Path

import pytest

from tests.cmd.terminal import open_terminal, resize
from tests.support.ports import free_port
from tests.support.quickest import once_within
from tests.support.wait import eventually

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.program


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


def command(examples: Path, *arguments: str, manifests: str = "quickstart") -> list[str]:
    """Return the command line of a demo of these examples, with an agent socket beside them."""
    words = [sys.executable, "-m", "waggle", "demo", *arguments]
    words += ["--socket", str(examples.parent / "run" / "agent.sock")]
    words += ["--manifests", str(examples / manifests)]
    return [*words, "--router", str(examples / "router.yaml")]


def start(
    examples: Path, *arguments: str, manifests: str = "quickstart", cells: str = ""
) -> subprocess.Popen[str]:
    """Start the demo off a terminal; ``cells`` are switched on."""
    return subprocess.Popen(
        command(examples, *arguments, manifests=manifests),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WAGGLE_ENABLE_CELL": cells} if cells else None,
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


def wait_for(lines: Iterator[str], text: str) -> None:
    for found in lines:
        if found.startswith(text):
            return
    raise AssertionError(text)


def test_once_ends_when_the_router_holds_the_routes_of_render(examples: Path) -> None:
    output, errors = start(examples, "--once").communicate(timeout=60)
    assert errors == ""
    prefixes = [line.split()[0] for line in output.splitlines()]
    assert sorted(prefixes) == [
        "10.244.1.0/24",
        "198.51.100.10/32",
        "2001:db8:100::10/128",
        "fd00:10:244:1::/64",
    ]


def test_once_fails_at_its_timeout(examples: Path) -> None:
    router = examples / "router.yaml"
    router.write_text(router.read_text().replace("asn: 65001", "asn: 64999"))
    demo = start(examples, "--once", "--timeout", "3")
    _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "the routes of the router differ from waggle render" in errors


def test_the_example_of_antrea_runs_on_loopback(examples: Path) -> None:
    demo = start(examples, "--once", "-o", "json", manifests="antrea", cells="antrea")
    output, errors = demo.communicate(timeout=60)
    assert errors == ""
    items = json.loads(output)["items"]
    assert [item["session"]["state"] for item in items if "session" in item] == ["Established"]
    routes = {item["route"]["prefix"]: item["route"] for item in items if "route" in item}
    assert routes["203.0.113.40/32"]["originObjects"]


def test_a_demo_without_routes_says_why(examples: Path) -> None:
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
    demo.send_signal(signal.SIGINT)
    assert demo.communicate(timeout=60)[1] == ""


def test_a_demo_works_beside_an_agent_that_listens_and_leaves_its_session_alone(
    examples: Path,
) -> None:
    """The agent is that of another demo, with a router of its own."""
    path = examples / "quickstart" / "bgp.yaml"
    port = free_port("127.0.0.1")
    path.write_text(path.read_text().replace("localASN:", f"localPort: {port}\n      localASN:"))
    first = start(examples)
    routed(first)
    with copied_examples() as beside:
        output, errors = start(beside, "--once").communicate(timeout=60)
    assert errors == ""
    assert "198.51.100.10/32" in output
    with socket.create_connection(("127.0.0.1", port), timeout=60):
        pass
    first.send_signal(signal.SIGINT)
    shown, errors = first.communicate(timeout=60)
    assert (first.returncode, errors) == (0, "")
    lost = [line for line in shown.splitlines() if line.startswith("-")]
    assert lost == [], "the session of the first agent stayed up"


def test_a_changed_manifest_is_shown_and_an_interrupt_ends_both_programs(examples: Path) -> None:
    demo = start(examples)
    assert demo.stdout is not None
    lines = iter(demo.stdout.readline, "")
    wait_for(lines, "+ 2001:db8:100::10/128")
    services = examples / "quickstart" / "services.yaml"
    text = services.read_text()

    def change(number: int) -> None:
        address = f"198.51.100.{99 + number}"
        services.write_text(text.replace("198.51.100.10", address))
        wait_for(lines, f"+ {address}/32")

    once_within(1, change)
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=60)
    assert (demo.returncode, errors) == (0, "")


def test_a_port_in_use_is_an_immediate_error(examples: Path) -> None:
    port = int((examples / "router.yaml").read_text().split("port:")[1].split()[0])
    with socket.create_server(("127.0.0.2", port)):
        demo = start(examples, "--once")
        _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert f"cannot listen on 127.0.0.2 port {port}" in errors


def gone(examples: Path) -> None:
    """Raise while one of the two programs runs."""
    assert programs(examples) == []


def routed(demo: subprocess.Popen[str]) -> None:
    """Wait for the routes of a demo off a terminal."""
    assert demo.stdout is not None
    wait_for(iter(demo.stdout.readline, ""), "+ 2001:db8:100::10/128")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_no_program_is_left_behind_however_the_demo_ends(examples: Path, number: int) -> None:
    demo = start(examples)
    routed(demo)
    demo.send_signal(number)
    demo.communicate(timeout=60)
    # Where it can, it ends in order, with its files.
    assert demo.returncode == (-number if number == signal.SIGKILL else 0)
    if number != signal.SIGKILL:
        assert list((examples.parent / "run").glob("demo-*")) == []
    eventually(lambda: gone(examples))


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


def test_a_terminal_that_cannot_move_its_cursor_has_lines(examples: Path) -> None:
    screen = Screen(examples, 100, term="dumb")
    screen.until("+ 198.51.100.10/32 via")
    screen.demo.send_signal(signal.SIGINT)
    assert screen.demo.wait(60) == 0
    os.close(screen.here)
    gone(examples)


def test_the_end_of_the_terminal_ends_both_programs(examples: Path) -> None:
    # As make does: it gets SIGHUP, which the kernel sends to no other process, and waits.
    screen = Screen(examples, 100, ["sh", "-c", 'trap : HUP; "$@"; exit', "sh"])
    screen.until("Ctrl-C ends it")
    assert len(programs(examples)) == 2
    os.close(screen.here)
    screen.demo.wait(60)
    gone(examples)


def test_the_screen_follows_the_size_of_the_terminal(examples: Path) -> None:
    screen = Screen(examples, 120)
    screen.until("fd00:10:244:1::/64")
    resize(screen.here, 60)
    # Frames from before the change may be read first; without a frame that fits the test times out.
    while any(len(line) > 60 for line in screen.until("Ctrl-C ends it")):
        pass
    screen.demo.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):
        while os.read(screen.here, 65536):
            pass
    assert screen.demo.wait(60) == 0
    gone(examples)


def test_the_screen_is_given_back_while_the_demo_is_suspended_and_drawn_again(
    examples: Path,
) -> None:
    screen = Screen(examples, 120)
    screen.until("fd00:10:244:1::/64")
    screen.demo.send_signal(signal.SIGTSTP)
    screen.until("\x1b[?1049l")
    eventually(lambda: _check_suspended(screen.demo.pid))
    screen.demo.send_signal(signal.SIGCONT)
    screen.until("\x1b[?1049h")
    assert "fd00:10:244:1::/64" in "".join(screen.until("Ctrl-C ends it"))
    screen.demo.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):
        while os.read(screen.here, 65536):
            pass
    assert screen.demo.wait(60) == 0
    gone(examples)


def _check_suspended(pid: int) -> None:
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_demo_goes_on_in_the_background_until_it_is_stopped(examples: Path) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            command(examples, *arguments), capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout, done.stderr

    status, shown, errors = run("--detach")
    assert (status, errors) == (0, "")
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
