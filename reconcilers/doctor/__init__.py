"""The checks of ``waggle doctor``, in the order in which an engineer makes them.

First what everything needs (the API server, kinds, rights, agents, clocks), then what keeps sessions
down, then what will. Dialects add theirs at the end (`reconcilers.dialect.Diagnosis`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from reconcilers.dialect import Check, Diagnosis, Dialect, Evidence, Finding
from reconcilers.doctor import agents, api_server, host, objects, sessions
from resources.kind import Kind

CHECKS: Final[tuple[Check, ...]] = (
    api_server.API_SERVER,
    api_server.CRDS,
    api_server.RBAC,
    agents.AGENTS,
    agents.VERSIONS,
    agents.CLOCK,
    host.PORT,
    sessions.MD5,
    sessions.TTL,
    host.MTU,
    host.ROUTER_IDS,
    sessions.ASNS,
    sessions.SESSIONS,
    sessions.ROUTES,
    api_server.TLS,
    objects.STATUSES,
    host.KERNEL,
    objects.OBJECTS,
)
"""The checks that are of no dialect."""


class Result(NamedTuple):
    """One check and what it has found; ``skipped`` is why it was not made."""

    check: Check
    findings: tuple[Finding, ...] = ()
    skipped: str = ""


def checks_of(dialects: Iterable[type[Dialect]]) -> tuple[Check, ...]:
    """Return all checks of ``waggle doctor`` in order, of dialects last."""
    return (*CHECKS, *(own.check for dialect in dialects for own in dialect.each(Diagnosis)))


def kinds_of_checks(dialects: Iterable[type[Dialect]]) -> tuple[Kind[Any], ...]:
    """Return the kinds whose objects the checks of dialects for ``waggle doctor`` read."""
    return tuple(
        {
            kind: None
            for dialect in dialects
            for own in dialect.each(Diagnosis)
            for kind in own.kinds
        }
    )


def examine(evidence: Evidence, checks: Iterable[Check]) -> list[Result]:
    """Make the checks of ``waggle doctor``; an error of one is its result, and stops no other."""
    return [_result(evidence, check) for check in checks]


def _result(evidence: Evidence, check: Check) -> Result:
    of_cluster = evidence.cluster
    if check.needs == "cluster" and of_cluster is None:
        return Result(
            check, skipped="the answers are of one agent, and of no API server (--all-nodes)"
        )
    is_away = of_cluster is not None and bool(of_cluster.error)
    if check.needs == "cluster" and is_away and check is not api_server.API_SERVER:
        return Result(check, skipped="the API server does not answer")
    if check.needs == "any" and is_away and not evidence.answered:
        return Result(check, skipped="the API server does not answer")
    if check.needs == "agents" and not evidence.nodes:
        return Result(check, skipped="there is no answer of an agent")
    if check.needs == "agents" and not evidence.answered and check is not agents.AGENTS:
        return Result(check, skipped="no agent has answered")
    unread = of_cluster.unread.get(check.reads, "") if of_cluster is not None else ""
    try:
        findings = tuple(check.run(evidence))
        return Result(check, findings, skipped=unread if not findings else "")
    except Exception as error:  # noqa: BLE001  the evidence is what other programs answer
        return Result(
            check, skipped=f"the evidence is not understood: {type(error).__name__}: {error}"
        )
