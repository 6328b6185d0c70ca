"""A capability is given up for good: by this process, and for what it starts from then on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.program

SCRIPT = """
import json, subprocess, sys, threading
from cells.hive.capabilities import NET_ADMIN, give_up

def shown():
    lines = open("/proc/thread-self/status").read().splitlines()
    sets = dict(line.split(":\\t") for line in lines if line.startswith("Cap"))
    return {name: bool(int(value, 16) & 1 << NET_ADMIN) for name, value in sets.items()}

def child():
    code = "print(open('/proc/self/status').read())"
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    (line,) = [line for line in text.splitlines() if line.startswith("CapEff")]
    return bool(int(line.split()[1], 16) & 1 << NET_ADMIN)

before = shown(), child()
if sys.argv[1] == "thread":
    stop = threading.Event()
    threading.Thread(target=stop.wait).start()
try:
    gave = [give_up(NET_ADMIN), give_up(NET_ADMIN)]
except OSError as error:
    gave = str(error)
if sys.argv[1] == "thread":
    stop.set()
print(json.dumps([before, gave, shown(), child()]))
"""


def run(mode: str) -> tuple[tuple[dict[str, bool], bool], object, dict[str, bool], bool]:
    top = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mode],
        cwd=top,
        env={**os.environ, "PYTHONPATH": str(top)},
        capture_output=True,
        text=True,
        check=True,
    )
    before, gave, after, child = json.loads(done.stdout)
    if not before[0]["CapEff"]:
        pytest.skip("this process has no CAP_NET_ADMIN that it could give up")
    return before, gave, after, child


def test_no_set_has_it_and_no_child_gets_it() -> None:
    before, gave, after, child = run("alone")
    assert before[1]
    assert gave == [True, False]
    assert not any(after.values())
    assert not child


def test_a_thread_that_would_keep_it_is_an_error() -> None:
    _, gave, after, _ = run("thread")
    assert gave == "[Errno 16] 1 threads keep the capability"
    assert not after["CapEff"]
