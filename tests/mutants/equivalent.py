"""Random mutants that no test can notice, each with the reason."""

from __future__ import annotations

from typing import Final, NamedTuple


class Equivalent(NamedTuple):
    """A change of the line ``text`` of a module (without its indentation) that changes no behaviour."""

    module: str
    text: str
    change: str
    """As printed: ``old -> new``."""
    reason: str


_COLLECTOR = (
    "thresholds of the garbage collector: a little more or less of memory and time, no result"
)

EQUIVALENT: Final = (
    Equivalent(
        "cells/api/agent_socket.py",
        "credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)",
        "12 -> 13",
        "the kernel returns the 12 octets of struct ucred in any larger room",
    ),
    Equivalent(
        "cells/observability/logging/__init__.py",
        "cache_logger_on_first_use=False,",
        ", cache_logger_on_first_use=False -> (nothing)",
        "structlog's default, written since a cached logger would keep its level",
    ),
    Equivalent(
        "cells/serve/handlers.py",
        "await response.write_eof()",
        "await response.write_eof() -> pass",
        "aiohttp ends a response that its handler returns",
    ),
    Equivalent(
        "cmd/waggle/commands/plan/__init__.py",
        'add_option_flags(parser, "kernel", FibOptions)',
        "\"kernel\" -> 'kernel_'",
        "the name of the settings in a file, which the command does not read; the flags have their own",
    ),
    Equivalent(
        "cmd/waggle/commands/bugreport/__init__.py",
        "data = file.read(MAX_FILE_OCTETS + 1)",
        "1 -> 2",
        "that there is more than the limit is as sure with a second octet",
    ),
    Equivalent(
        "cmd/waggle/jsonpath.py",
        "while at < len(text):",
        "< -> <=",
        "at the end of a template an empty text follows, which prints nothing",
    ),
    Equivalent(
        "cmd/waggle/commands/schema/schemas.py",
        'if member.get("default", 0) is None:',
        "0 -> 1",
        "of a member without a default: any value that is not None",
    ),
    Equivalent(
        "cmd/waggle/fleet/agents.py",
        'return ""',
        '"" -> None',
        "no problem: asked whether it is true, and never printed",
    ),
    Equivalent(
        "cmd/waggle/output.py",
        "return False",
        "False -> None",
        "of no colours: the layout asks whether it is true",
    ),
    Equivalent(
        "cmd/waggle/route_list.py",
        "close = difflib.get_close_matches(word, (*tables, *FAMILIES), n=1)",
        ", n=1 -> (nothing)",
        "of more matches, too, only the first one is named",
    ),
    Equivalent(
        "cells/observability/span_export.py",
        'return "OfCauses"',
        '"OfCauses" -> None',
        "the description of a sampler, which the SDK asks of it and never prints",
    ),
    *(
        Equivalent(
            "cmd/waggle_agent/__main__.py", "gc.set_threshold(200_000, 20, 50)", change, _COLLECTOR
        )
        for change in ("200_000 -> 200001", "20 -> 21", "50 -> 51")
    ),
)
