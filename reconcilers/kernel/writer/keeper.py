"""Starts the writer again when it dies, with the capability that the agent has given up.

A process with the capability NET_ADMIN that does nothing but wait: its child, the writer, shares its
memory. Without it an agent that has given the capability up could not start another writer.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

from reconcilers.process.log import log

FIRST_PAUSE: Final = 0.05
LAST_PAUSE: Final = 5.0
"""Seconds before the next start, which double with each death in a short time."""
FORGOTTEN: Final = 30.0
"""Seconds of life after which the next pause is the first one."""


def keep(work: Callable[[], int]) -> int:
    """Run ``work`` in a child, again while it dies; returns when it returns 0, or at SIGTERM."""
    pause = FIRST_PAUSE
    child = 0

    def end(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        if child:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)
        os._exit(0)

    while True:
        began = time.monotonic()
        blocked = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            _run(work)
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        _, status = os.waitpid(child, 0)
        child = 0
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return 0
        if time.monotonic() - began >= FORGOTTEN:
            pause = FIRST_PAUSE
        how = f"status {code}" if code > 0 else f"signal {-code}"
        log(
            "error", f"the writer ended with {how}; it starts again in {pause:g} s, and routes stay"
        )
        time.sleep(pause)
        pause = min(2 * pause, LAST_PAUSE)


def _run(work: Callable[[], int]) -> NoReturn:
    status = 1
    try:
        status = work()
    finally:
        sys.stderr.flush()
        os._exit(status)
