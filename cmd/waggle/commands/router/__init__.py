"""``waggle router``: the speaker alone as a small BGP router, for labs, demos, tests and benchmarks.

`program` is the router, and `cells.serve` its local API: that of the agent, with its own paths (`api`).
This module declares the command; the other modules of the package are imported on use. docs/router.md
describes the configuration file.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cells.arguments import positive
from resources.pages import reference
from waggle import ask_agent, output, route_list, session_list
from waggle.commands.router.log import FORMATS
from waggle.output import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
    USAGE,
    WATCH_ENDS,
    complain,
    exit_statuses,
)
from waggle.tables import Column
from waggle.watching import add_watch_flag

if TYPE_CHECKING:
    from waggle.router_config import ConfigError


UNUSABLE: Final = f"{USAGE}, or the configuration cannot be used"
NO_ROUTER: Final = "no router runs, or it does not answer"
NO_NEIGHBOR: Final = "no such neighbor"
REJECTED: Final = f"{UNUSABLE}, or the router rejects the action"
STATUSES: Final[dict[str, dict[int, str]]] = {
    "check": {EXIT_OK: "valid", EXIT_USAGE: f"{USAGE}, or an invalid configuration"},
    "announce": {EXIT_OK: "announced", EXIT_ERROR: NO_ROUTER, EXIT_USAGE: REJECTED},
    "withdraw": {
        EXIT_OK: "withdrawn",
        EXIT_ERROR: NO_ROUTER,
        EXIT_USAGE: REJECTED,
        EXIT_NOT_FOUND: "a prefix that the router does not originate",
    },
    "shutdown": {
        EXIT_OK: "shut down",
        EXIT_ERROR: NO_ROUTER,
        EXIT_USAGE: REJECTED,
        EXIT_NOT_FOUND: NO_NEIGHBOR,
    },
    "enable": {
        EXIT_OK: "enabled",
        EXIT_ERROR: NO_ROUTER,
        EXIT_USAGE: REJECTED,
        EXIT_NOT_FOUND: NO_NEIGHBOR,
    },
    "clear": {
        EXIT_OK: "reset, or routes are sent again",
        EXIT_ERROR: f"{NO_ROUTER}; of --soft: the session is down, or the neighbor does not support "
        "ROUTE-REFRESH",
        EXIT_USAGE: REJECTED,
        EXIT_NOT_FOUND: NO_NEIGHBOR,
    },
    "peers": {
        EXIT_OK: "success, also without neighbors",
        EXIT_ERROR: NO_ROUTER,
        EXIT_USAGE: UNUSABLE,
        EXIT_NOT_FOUND: NO_NEIGHBOR,
        EXIT_INTERRUPTED: WATCH_ENDS,
    },
    "collectors": {EXIT_OK: "success", EXIT_ERROR: NO_ROUTER, EXIT_USAGE: UNUSABLE},
    "routes": {
        EXIT_OK: "success",
        EXIT_ERROR: NO_ROUTER,
        EXIT_USAGE: UNUSABLE,
        EXIT_NOT_FOUND: f"{NO_NEIGHBOR}, or no route of PREFIX or ADDRESS",
        EXIT_INTERRUPTED: WATCH_ENDS,
    },
}
"""The exit statuses of each action, for its help."""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command, its arguments and its actions."""
    parser = subparsers.add_parser(
        "router",
        help="run the speaker alone, as a small BGP router",
        description="Run a small BGP router until SIGTERM, or perform an action on a running one. "
        f"{reference('router')} describes the configuration file.",
        epilog=exit_statuses(
            {
                EXIT_OK: "ended by SIGTERM or SIGINT, or action performed",
                EXIT_ERROR: "cannot start, or the router does not answer",
                EXIT_USAGE: "wrong usage, invalid configuration, or the router rejects the action",
                EXIT_NOT_FOUND: "no such neighbor, route or originated prefix",
            }
        ),
    )
    _add_config(parser, default=None)
    parser.add_argument(
        "--restarted",
        action="store_true",
        help="set the Restart State bit: neighbors keep the routes of a predecessor (RFC 4724)",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="record every input of the speaker in a file, for waggle replay",
    )
    parser.add_argument(
        "--record-limit",
        type=positive,
        default=256,
        metavar="MIB",
        help="the largest size of that file (default: %(default)s)",
    )
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default=FORMATS[0],
        help="form of the lines of the running router, as of the agent (default: %(default)s)",
    )
    parser.set_defaults(action="run")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    text = "check a configuration file, and start nothing"
    check = _add_action(actions, "check", text)
    check.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="the configuration, YAML (default: that of -c)",
    )
    output.add_output_flags(check, ("text", "table", "json", "jsonl", "yaml"), "text")
    for name, text in (
        ("announce", "announce prefixes from a running router"),
        ("withdraw", "withdraw prefixes from a running router"),
    ):
        action = _add_action(actions, name, text)
        action.add_argument("prefixes", nargs="+", metavar="PREFIX", help="such as 10.0.0.0/24")
        _add_where(action)
        if name == "announce":
            _add_attributes(action)
        output.add_output_flags(action)
    for name, text in (
        ("shutdown", "shut down the session of a neighbor (Cease, administrative shutdown)"),
        ("enable", "enable a neighbor that was shut down"),
    ):
        action = _add_action(actions, name, text)
        action.add_argument("peer", metavar="NEIGHBOR", help="its name or address")
        if name != "enable":
            action.add_argument(
                "--message", default="", metavar="TEXT", help="shutdown communication (RFC 9003)"
            )
        _add_where(action)
        output.add_output_flags(action)
    text = "reset the session of a neighbor, or with --soft have its routes sent again"
    clear = _add_action(actions, "clear", text)
    clear.add_argument("peer", metavar="NEIGHBOR", help="its name or address")
    clear.add_argument(
        "--soft",
        choices=("in", "out"),
        help="the session stays up. in: ROUTE-REFRESH (RFC 2918); out: all routes are sent again",
    )
    clear.add_argument(
        "--message", metavar="TEXT", help="shutdown communication of a reset (RFC 9003)"
    )
    clear.add_argument(
        "--family", metavar="FAMILY", help="with --soft in: this family alone, ipv4-unicast"
    )
    _add_where(clear)
    output.add_output_flags(clear)
    for name, text in (
        ("peers", "list the sessions of a running router"),
        ("collectors", "list the BMP monitoring stations of a running router"),
        ("routes", "list the routes of a running router"),
    ):
        listing = _add_action(actions, name, text)
        _add_where(listing)
        if name == "routes":
            route_list.add_arguments(listing, "available")
        elif name == "peers":
            listing.add_argument("--peer", metavar="P", help="only this peer, by name or address")
            add_watch_flag(listing)
            listing.set_defaults(instance=None)
        output.add_output_flags(listing)


def _add_action(
    actions: argparse._SubParsersAction[Any], name: str, text: str
) -> argparse.ArgumentParser:
    """Add an action with its description and exit statuses."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=exit_statuses(STATUSES[name]),
    )
    return parser


def _add_config(parser: argparse.ArgumentParser, default: Any) -> None:  # noqa: ANN401  argparse's
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        default=default,
        metavar="FILE",
        help="the router's configuration, YAML",
    )


def _add_where(parser: argparse.ArgumentParser) -> None:
    _add_config(parser, default=argparse.SUPPRESS)
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="the running router's apiSocket (default: as in FILE)",
    )
    ask_agent.listens_on_socket(parser, "router")


def _add_attributes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--next-hop",
        metavar="ADDRESS",
        help="the next hop (default: the local address of the session)",
    )
    parser.add_argument("--med", type=int, metavar="N", help="MULTI_EXIT_DISC")
    parser.add_argument("--local-preference", type=int, metavar="N", help="for iBGP peers")
    parser.add_argument(
        "--community",
        action="append",
        default=[],
        dest="communities",
        metavar="A:B",
        help="a community, or a name such as graceful-shutdown; may be given several times",
    )
    parser.add_argument(
        "--large-community",
        action="append",
        default=[],
        dest="large_communities",
        metavar="A:B:C",
        help="a large community; may be given several times",
    )


def run(args: argparse.Namespace) -> int:
    """Run the router or perform the action; returns the exit status."""
    from cells.hangup import note_hangups

    action = args.action or "run"
    # Before the imports of a router, which take a while.
    hung_up = note_hangups() if action == "run" else None
    from waggle.router_config import ConfigError, load

    if action == "check":
        file = args.file or args.config
        return _usage("FILE is missing", action) if file is None else _check(file, args)
    try:
        config = load(args.config) if args.config is not None else None
    except ConfigError as error:
        return _invalid(error, "" if action == "run" else action)
    if action == "run":
        if config is None:
            return _usage("-c FILE is missing")
        from waggle.commands.router.program import main

        return main(
            args.config,
            config,
            restarted=args.restarted,
            record=args.record,
            record_limit=args.record_limit * 1024 * 1024,
            log_format=args.log_format,
            hung_up=hung_up,
        )
    if args.socket is None and config is not None and config.api_socket is not None:
        args.socket = Path(config.api_socket)
    if args.socket is None:
        return _usage("--socket PATH is missing, or -c FILE with apiSocket", action)
    if action == "clear" and (sentence := _clear_conflict(args)):
        return _usage(sentence, action)
    if action == "peers":
        return session_list.run(args)
    if action == "routes":
        return route_list.run(args)
    from waggle.commands.router import actions

    return actions.run(action, args)


def _clear_conflict(args: argparse.Namespace) -> str:
    """Return which flags of ``clear`` do not go together; empty where all do."""
    if args.message is not None and args.soft is not None:
        return "--message: not with --soft, which ends no session"
    if args.family is not None and args.soft != "in":
        return "--family: with --soft in only"
    return ""


CHECKED: Final = "RouterConfigurationList"
CHECKED_COLUMNS: Final = (
    Column("FILE", output.member("file")),
    Column("ASN", output.member("asn"), right=True),
    Column("ROUTER-ID", output.member("routerID")),
    Column("NEIGHBORS", output.member("neighbors"), right=True),
    Column("PREFIXES", output.member("prefixes"), right=True),
)


def _check(path: Path, args: argparse.Namespace) -> int:
    """Check a configuration file; returns the exit status."""
    from waggle.router_config import ConfigError, load

    is_data = args.output not in ("text", "table")
    try:
        config = load(path)
    except ConfigError as error:
        if not is_data:
            return _invalid(error, "check")
        errors = [{"code": "InvalidConfiguration", "message": text} for text in error.sentences]
        output.dump(output.document(CHECKED, [], errors), args.output)
        return EXIT_USAGE
    notes = [f"{path}: {warning}" for warning in config.warnings()]
    neighbors, prefixes = len(config.neighbors), len(config.originated())
    item = {
        "file": str(path),
        "asn": config.asn,
        "routerID": str(config.router_id),
        "neighbors": neighbors,
        "prefixes": prefixes,
    }
    if is_data:
        output.dump({**output.document(CHECKED, [item]), "notes": notes}, args.output)
        return EXIT_OK
    for note in notes:
        complain("waggle router check: note", note)
    if args.output == "table":
        output.table(CHECKED_COLUMNS, [item], args)
        return EXIT_OK
    counts = (
        f"{neighbors} neighbor{'s' * (neighbors != 1)}, "
        f"{prefixes} prefix{'es' * (prefixes != 1)} to originate"
    )
    print(f"{path}: valid: AS {config.asn} ({config.router_id}), {counts}")
    return EXIT_OK


def _invalid(error: ConfigError, action: str) -> int:
    *others, last = error.sentences
    for sentence in (*others, f"{last}; {reference('router')} describes the file"):
        complain(_command(action), sentence)
    return EXIT_USAGE


def _usage(sentence: str, action: str = "") -> int:
    complain(_command(action), f"{sentence}; see {_command(action)} --help")
    return EXIT_USAGE


def _command(action: str) -> str:
    return f"waggle router {action}".rstrip()
