"""Compiles both states of all nodes, and prints the plan."""

from __future__ import annotations

import argparse
import base64
import functools
import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from cells.api.client import Client
from reconcilers.bfd.options import BfdOptions
from reconcilers.compile_manifests import (
    OfflineSettings,
    UnknownNodeError,
    kinds_of,
    unknown_node,
)
from reconcilers.dialect import Dialect
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.received_file import InvalidReceivedFile, ReceivedRoutes, decode_received
from reconcilers.plan import Plan, state_of
from reconcilers.plan.kernel_inputs import KernelInputs, received_of
from reconcilers.plan_manifests import (
    UnreadableFileError,
    added,
    node_names,
    plan_from_state,
    plan_manifests,
)
from resources.enumeration import counted
from resources.given_file import read_given
from resources.manifests.applied import PresentObjects
from resources.manifests.load import STANDARD_INPUT, Loaded, UnreadablePathError, load
from resources.option_declarations import InvalidOption
from waggle import ask_agent, output
from waggle.commands.plan import EXIT_CHANGES, EXIT_PROBLEMS
from waggle.commands.plan.markdown import markdown
from waggle.commands.plan.text import lines
from waggle.intent_flags import given_options, offline_settings
from waggle.manifest_flag import manifest_paths
from waggle.progress import expect_input, progress_of

KIND: Final = "PlanList"
MAX_RECEIVED: Final = 20_000
"""Received routes of an agent that a plan is made of."""
NO_KERNEL: Final = "this agent installs no routes in the kernel (--fib): --received has no effect"


class UsageError(Exception):
    """Flags that do not go together."""


UNUSABLE = (
    UsageError,
    UnreadablePathError,
    UnreadableFileError,
    InvalidOption,
    InvalidReceivedFile,
    msgspec.ValidationError,
)
"""Input of which no plan can be made."""


def run_plan(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    # All objects are kept until the end: garbage collection would take a fifth of the time.
    gc.disable()
    notes: list[str] = []
    try:
        plan = _plan(args, notes)
    except UnknownNodeError as error:
        output.fail(args, KIND, "NotFound", str(error))
        return output.EXIT_NOT_FOUND
    except ask_agent.AgentError as error:
        text = str(error)
        if not args.from_cluster:
            text += "; --from PATH compares with manifests, --from-cluster with a cluster"
        output.fail(args, KIND, error.code, text)
        return output.EXIT_USAGE
    except UNUSABLE as error:
        output.fail(args, KIND, "BadRequest", str(error))
        return output.EXIT_USAGE
    errors = list(plan.violations(args.max_withdraw, no_reset=args.no_reset))
    answer = output.document(KIND, plan.items(), errors)
    answer |= {"problems": plan.problems(), "summary": plan.summary()}
    if notes:
        answer["notes"] = notes
    _print(answer, args)
    if errors or any(problem["change"] == "new" for problem in answer["problems"]):
        return EXIT_PROBLEMS
    return EXIT_CHANGES if answer["items"] else output.EXIT_OK


def _plan(args: argparse.Namespace, notes: list[str]) -> Plan:
    if args.prune and not args.from_cluster:
        raise UsageError("--prune: only with --from-cluster")
    if args.present is None and not args.from_cluster:
        return _plan_of_agent(args, notes)
    if args.socket is not None:
        flag = "--from-cluster" if args.from_cluster else "--from"
        raise UsageError(f"--socket: not with {flag}, which has the state before the change")
    if args.received is not None and len(args.node) != 1:
        raise InvalidReceivedFile("--received: the routes of one node, which --node names")
    if args.received == "":
        raise InvalidReceivedFile("--received: a FILE, except against a running agent")
    nodes, args.node = args.node, ""
    fib = given_options(args, "kernel", FibOptions)
    if fib.fib is None:
        fib = msgspec.structs.replace(fib, fib="auto")
    bfd = given_options(args, "bfd", BfdOptions).bfd
    settings = msgspec.structs.replace(offline_settings(args, args.dialects), fib=fib, bfd=bfd)
    dialects = args.dialects.load()
    before, after = _manifests(args, dialects, settings, notes)
    if known := node_names(before, after):
        for node in nodes:
            if node not in known:
                raise UnknownNodeError(unknown_node(node, known))
    received = None if args.received is None else decode_received(_read(args.received))
    progress = progress_of(args)

    def report(done: int, of_nodes: int) -> None:
        progress.report(f"{done} of {counted(of_nodes, 'node')}")

    return plan_manifests(before, after, dialects, settings, nodes, received, report)


def _manifests(
    args: argparse.Namespace,
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    notes: list[str],
) -> tuple[Loaded, Loaded]:
    """Return the manifests before and after the change."""
    kinds = kinds_of(dialects)
    if args.from_cluster:
        from waggle.commands.plan.cluster import read_both

        progress_of(args).set_step("reads the cluster")
        cluster = read_both(args, dialects, settings, kinds)
        notes += cluster.notes
        return cluster.before, cluster.after
    present, changed = [path for group in args.present for path in group], manifest_paths(args)
    if STANDARD_INPUT in present and STANDARD_INPUT in changed:
        raise UsageError("-: standard input is one of --from and -f, not both")
    if STANDARD_INPUT in present:
        expect_input(args)
    objects = PresentObjects(kinds)
    before = load(present, kinds, sys.stdin.buffer, objects.remember if args.add else None)
    after = load(changed, kinds, sys.stdin.buffer, objects.apply if args.add else None)
    return before, added(before, after) if args.add else after


def _plan_of_agent(args: argparse.Namespace, notes: list[str]) -> Plan:
    """Return the plan against a running agent. Raises `AgentError`, and as `_plan`."""
    flags = (
        ("--add", args.add),
        # The agent's answer has it.
        ("--bfd", given_options(args, "bfd", BfdOptions).bfd),
    )
    for flag, given in flags:
        if given:
            raise UsageError(f"{flag}: only with --from or --from-cluster")
    agent = ask_agent.client(args)
    answer = agent.get("/v1/intent", {})
    for error in answer["errors"]:
        raise ask_agent.AgentError(error["code"], error["message"])
    first, *items = answer["items"]
    node = first["node"]
    if [node] != (args.node or [node]):
        text = (
            f"--node {args.node[0]}: the agent is that of node {node}; --from PATH has other nodes"
        )
        raise UnknownNodeError(text)
    args.node = ""
    dialects = args.dialects.load()
    settings = msgspec.structs.replace(
        offline_settings(args, args.dialects), bfd=first.get("bfd", True)
    )
    after = load(manifest_paths(args), kinds_of(dialects), sys.stdin.buffer)
    kernel, received = _kernel_of(args, agent, notes)

    state = state_of(items)
    changed = functools.partial(changed_passwords, agent, notes)
    return plan_from_state(node, state, after, dialects, settings, changed, kernel, received)


def changed_passwords(
    agent: Client, notes: list[str], passwords: Mapping[tuple[str, str], bytes]
) -> set[tuple[str, str]]:
    """Return the peers, by instance and name, whose password differs from the agent's.

    The agent withholds its own, and compares. That it does not is a note.
    """
    given = [
        {"instance": instance, "peer": peer, "password": base64.b64encode(octets).decode()}
        for (instance, peer), octets in passwords.items()
    ]
    try:
        compared = agent.post("/v1/passwords", {"candidates": given})["items"]
    except ask_agent.AgentError as error:
        notes.append(f"whether passwords change is not known: {error}")
        return set()
    return {(item["instance"], item["peer"]) for item in compared if not item["equal"]}


def _kernel_of(
    args: argparse.Namespace, agent: Client, notes: list[str]
) -> tuple[KernelInputs | None, ReceivedRoutes | None]:
    """Return what decides about an agent's routes in the kernel, and what its peers announce.

    Raises `AgentError`, and `InvalidReceivedFile`.
    """
    if args.received is None:
        return None, None
    answer = ask_agent.of_cell(args, lambda client: client.get("/v1/kernel-inputs", {}), NO_KERNEL)
    inputs = KernelInputs.of_items(answer["items"])
    if args.received:
        return inputs, decode_received(_read(args.received))
    query = {"table": "received", "limit": str(MAX_RECEIVED + 1)}
    routes = list(islice(agent.get_list("/v1/routes", query), MAX_RECEIVED + 1))
    if len(routes) > MAX_RECEIVED:
        raise InvalidReceivedFile(
            f"--received: the peers announce more than {MAX_RECEIVED} routes; give a FILE with some"
        )
    notes += _not_kept(agent.get("/v1/peers", {})["items"])
    return inputs, received_of(routes)


def _not_kept(peers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for peer in peers:
        not_kept = sum(family.get("notKept", 0) for family in peer.get("received", ()))
        if not_kept:
            yield (
                "routes that are not kept (--keep-received) are not known: "
                f"{not_kept} of peer {peer['name']}"
            )


def _read(path: str) -> bytes:
    try:
        return read_given(path)
    except OSError as error:
        raise InvalidReceivedFile(f"{path}: {error.strerror}") from None


def _print(answer: dict[str, Any], args: argparse.Namespace) -> None:
    if args.output == "markdown":
        sys.stdout.write(markdown(answer))
    elif args.output != "table":
        output.dump(answer, args.output)
        return
    else:
        color = output.use_color(args.color, sys.stdout)
        for style, text in lines(answer):
            output.line(text, 4, style=style if color else "")
        for error in answer["errors"]:
            output.complain("waggle plan", error["message"])
    for note in answer.get("notes", ()):
        output.complain("waggle plan", note)
