"""The live screen of an agent; in a pipe a line for each reading, or one reading as data."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from waggle import ask_agent, output
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_OK
from waggle.top_screen import Reading, lines, summary

INTERVAL_SECONDS: Final = 2.0
CHANGES: Final = 50
KIND: Final = "TopList"
"""The kind of one reading as data."""


def is_shown() -> bool:
    """Whether there is a terminal for the screen, and a person who can end it."""
    is_terminal = output.terminal_width(sys.stdout) is not None and sys.stdin.isatty()
    return is_terminal and _has_screen()


def _has_screen() -> bool:
    """Whether the terminal of ``TERM`` is known here, and its cursor can be moved."""
    import curses

    try:
        curses.setupterm(fd=sys.stdout.fileno())
    except curses.error:
        return False
    return curses.tigetstr("cup") is not None


def live(
    args: argparse.Namespace, interval: float = INTERVAL_SECONDS, count: int | None = None
) -> int:
    """Show the screen, or lines, every ``interval`` seconds, ``count`` times; data once.

    Returns the exit status.
    """
    try:
        first = _read(args)
    except ask_agent.AgentError as error:
        output.fail(args, KIND, error.code, str(error))
        return EXIT_ERROR
    named = args.peer or args.instance
    if named and not first.sessions and (unknown := ask_agent.unknown_peer(args)):
        output.fail(args, KIND, "NotFound", unknown)
        return EXIT_NOT_FOUND
    if args.output not in output.TABLES:
        output.dump(output.document(KIND, [first.item()]), args.output)
        return EXIT_OK
    show = _screen if is_shown() else _print
    return show(args, first, interval, count)


def _read(args: argparse.Namespace) -> Reading:
    """Read the agent. Raises `AgentError`."""
    client = ask_agent.client(args)
    (process,) = client.get("/v1/process", {})["items"]
    sessions = client.get("/v1/peers", {"peer": args.peer, "instance": args.instance})["items"]
    try:
        changes = client.get("/v1/history", {"limit": str(CHANGES)})["items"]
    except ask_agent.AgentError as error:
        if error.code != "BadAnswer":  # the agent keeps no history
            raise
        changes = []
    return Reading(time.monotonic(), datetime.now(UTC), process, sessions, changes)


def _print(
    args: argparse.Namespace,
    before: Reading,
    interval: float,
    count: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Print a line for each reading."""
    shown = 0
    while True:
        sleep(interval)
        try:
            now = _read(args)
        except ask_agent.AgentError as error:
            output.complain(args.prog, str(error))
        else:
            output.line(summary(now, before), 2)
            sys.stdout.flush()
            before = now
        shown += 1
        if shown == count:
            return EXIT_OK


def _screen(args: argparse.Namespace, first: Reading, interval: float, count: int | None) -> int:
    import contextlib
    import curses
    import locale

    locale.setlocale(locale.LC_CTYPE, "")

    def show(screen: Any) -> int:  # noqa: ANN401 - curses has no public type
        # Neither is needed; a serial console (vt100) has no colours, others always a cursor.
        with contextlib.suppress(curses.error):
            curses.use_default_colors()
        with contextlib.suppress(curses.error):
            curses.curs_set(0)
        styles = {
            "red": curses.A_BOLD,
            "dim": curses.A_DIM,
            "head": curses.A_REVERSE,
            "": curses.A_NORMAL,
        }
        if curses.has_colors() and output.use_color("auto", sys.stdout):
            for number, color in enumerate((curses.COLOR_RED, curses.COLOR_GREEN), 1):
                curses.init_pair(number, color, -1)
            styles |= {"red": curses.color_pair(1), "green": curses.color_pair(2)}
        screen.timeout(int(interval * 1000))
        before = now = first
        trouble, held, shown = "", False, 1
        while True:
            height, width = screen.getmaxyx()
            screen.erase()
            for at, (text, style) in enumerate(lines(now, before, width, height, trouble)):
                screen.insnstr(at, 0, text, width, styles.get(style, curses.A_NORMAL))
            screen.refresh()
            key = screen.getch()
            if key in (ord("q"), 27) or shown == count:
                return EXIT_OK
            if key == ord("p"):
                held = not held
            if key != -1 or held:
                continue  # another size, or a key without a meaning
            shown += 1
            try:
                before, now, trouble = now, _read(args), ""
            except ask_agent.AgentError as error:
                trouble = str(error)

    return curses.wrapper(show)
