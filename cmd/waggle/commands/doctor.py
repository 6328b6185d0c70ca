"""``waggle doctor``: the checks that an engineer on call makes, in order, with evidence and remedy."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from resources.enumeration import counted
from resources.pages import reference
from waggle import ask_agent, output
from waggle.dialects import Dialects
from waggle.fleet.flags import add_fleet_flags, asks_cluster, default_kubeconfig, usage_error
from waggle.output import member
from waggle.tables import Column

if TYPE_CHECKING:
    from reconcilers.dialect import Evidence
    from reconcilers.doctor import Result

EXIT_FINDINGS: Final = 1
EXIT_UNKNOWN: Final = 2
STYLES: Final = {"ok": "green", "error": "red", "warning": "yellow", "skipped": "dim"}
NOUNS: Final = frozenset({"error", "warning"})
WORST_FIRST: Final = ("error", "warning", "ok", "skipped")
COLUMNS: Final = (
    Column("CHECK", member("check")),
    Column("RESULT", member("result"), style=lambda text: STYLES.get(text, "")),
    Column("NODE", member("node"), minor=3),
    Column("OBJECT", member("object"), minor=4, beneath=True),
    Column("EVIDENCE", member("evidence"), minor=2, beneath=True),
    Column("FIX", member("remedy"), minor=1, beneath=True),
)


def add_parser(subparsers: argparse._SubParsersAction[Any], dialects: Dialects) -> None:
    """Declare the arguments of ``waggle doctor``."""
    parser = subparsers.add_parser(
        "doctor",
        help="check an agent or a cluster: what is wrong, by which evidence, and the fix",
        description="Make the checks that an engineer on call makes, in order: the API server, "
        "definitions, rights, agents, clocks, the port of BGP, TCP MD5, hops and MTU, router IDs, AS "
        "numbers, certificates, statuses, the kernel, and the objects of API dialects. Nothing is "
        f"changed. {reference('runbook')} has a section for each fault.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "all is well",
                EXIT_FINDINGS: "errors or warnings",
                EXIT_UNKNOWN: "wrong usage, or neither an agent nor the API server answers",
            }
        ),
    )
    ask_agent.add_socket_flag(parser)
    add_fleet_flags(parser)
    output.add_output_flags(parser)
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Make all checks and print; returns the exit status."""
    from reconcilers.doctor import checks_of, examine

    checks = checks_of(args.dialects.load())
    try:
        if asks_cluster(args):
            if text := usage_error(args):
                output.complain(args.prog, text)
                return EXIT_UNKNOWN
            evidence = _of_cluster(args)
        else:
            evidence = _of_agent(args)
    except ask_agent.AgentError as error:
        output.fail(args, "CheckList", error.code, str(error))
        return EXIT_UNKNOWN
    results = examine(evidence, checks)
    items = [item for result in results for item in _items(result)]
    _print(args, evidence, items)
    is_known = evidence.answered or (evidence.cluster is not None and not evidence.cluster.error)
    if not is_known:
        return EXIT_UNKNOWN
    is_well = all(item["result"] in ("ok", "skipped") for item in items)
    return output.EXIT_OK if is_well else EXIT_FINDINGS


def _of_agent(args: argparse.Namespace) -> Evidence:
    from reconcilers.dialect import Evidence
    from reconcilers.doctor import checks_of
    from waggle.fleet.evidence import read_node

    node = read_node(ask_agent.client(args), checks_of(args.dialects.load()))
    return Evidence(now=time.time(), nodes=(node,))


def _of_cluster(args: argparse.Namespace) -> Evidence:
    from reconcilers.dialect import Evidence, NodeEvidence
    from reconcilers.doctor import checks_of, kinds_of_checks
    from waggle.fleet.ask import cluster_of, fleet_of, in_cluster
    from waggle.fleet.evidence import (
        CLUSTER_SECONDS,
        Cluster,
        of_fleet,
        read_cluster,
        read_node,
    )

    dialects = args.dialects.load()
    checks = checks_of(dialects)
    path = args.kubeconfig or default_kubeconfig()
    nodes: tuple[NodeEvidence, ...] = ()
    with cluster_of(args) as loop:
        kinds = kinds_of_checks(dialects)
        reading = Cluster(loop.connection, args.namespace, path, args.context, dialects, kinds)
        cluster = in_cluster(loop, read_cluster(reading), CLUSTER_SECONDS)
        if not cluster.error and not args.from_statuses:
            try:
                answers = fleet_of(args, loop).ask(lambda client: read_node(client, checks, "-"))
                nodes = of_fleet(answers.by_node, answers.failures)
            except ask_agent.AgentError as error:
                nodes = (NodeEvidence(node="", error=str(error)),)
    return Evidence(now=time.time(), cluster=cluster, nodes=nodes)


def _items(result: Result) -> Iterator[dict[str, Any]]:
    """Yield a row for each finding, or one for a check without any."""
    check = {"check": result.check.name}
    if result.skipped:
        yield {**check, "result": "skipped", "evidence": result.skipped}
    elif not result.findings:
        yield {**check, "result": "ok", "evidence": result.check.question}
    for finding in sorted(result.findings, key=lambda finding: finding.level):
        item = {**check, "result": finding.level, "node": finding.node, "object": finding.object}
        item |= {"evidence": finding.evidence, "remedy": finding.remedy}
        yield {name: value for name, value in item.items() if value}


def _print(
    args: argparse.Namespace, evidence: Evidence, items: Iterable[Mapping[str, Any]]
) -> None:
    rows = list(items)
    counts = {name: sum(row["result"] == name for row in rows) for name in WORST_FIRST}
    if args.output not in output.TABLES:
        nodes = {"nodes": len(evidence.nodes), "answered": len(evidence.answered)}
        output.dump(output.document("CheckList", rows) | {"summary": counts | nodes}, args.output)
        return
    output.table(COLUMNS, rows, args)
    parts = [
        counted(count, name) if name in NOUNS else f"{count} {name}"
        for name, count in counts.items()
        if count
    ]
    where = f"{len(evidence.answered)} of {counted(len(evidence.nodes), 'agent')} answered"
    output.complain(args.prog, f"{', '.join(parts)}; {where}; {reference('runbook')}")
