"""The review of one change: allowed, allowed with warnings, or denied with every reason.

A change is denied for what it makes worse: a broken rule of the object itself, or an ``invalid`` or
``conflict`` problem that was not there before. What was there before and is no larger is a warning,
so that people can repair; a reference to what is not there yet (``unresolved``) is one as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from reconcilers.admission.cluster_problems import ClusterProblem, cluster_problems
from reconcilers.admission.hypothetical_nodes import (
    hypothetical_label_sets,
    node_selectors,
    node_with,
    selects,
)
from reconcilers.dialect import Admission, Dialect, Feeding, extended
from reconcilers.model import ObjectRef, Problem
from resources.enumeration import bounded, enumerate_nodes
from resources.errors import FieldError, InvalidObject
from resources.kind import Kind
from resources.tables import Tables
from statedb import Database, Snapshot, Table, WriteTxn

_INDEX: Final = re.compile(r"\[\d+\]")
_DENIED: Final = frozenset({"invalid", "conflict"})
MAX_SENTENCES: Final = 20
"""Reasons, and warnings, of an answer."""
SHOWN: Final = 3
"""Objects and nodes that a sentence names."""


class Request(msgspec.Struct, frozen=True):
    """One change of an object (admission.k8s.io/v1 AdmissionRequest, the fields that are read)."""

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    api_version: str
    kind: str
    object: Any = None
    """As JSON; None for a deletion."""
    old_object: Any = None


class Verdict(msgspec.Struct, frozen=True):
    """The answer to a request: each message and warning is a sentence without its end."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()


class Reviewer:
    """Reviews changes of the objects of dialects against what the tables have."""

    def __init__(
        self,
        db: Database,
        tables: Tables,
        dialects: Iterable[Dialect],
        secrets_namespace: str = "kube-system",
        installing: Collection[str] = (),
    ) -> None:
        """``installing``: the dialects whose peers' routes agents install in the kernel, by name."""
        self._db = db
        self._tables = tables
        self._feeding = Feeding(dialects, installing)
        self._secrets_namespace = secrets_namespace
        self._reviewed = {
            kind.name: (kind, dialect, admission)
            for dialect, admission in extended(self._feeding.dialects.values(), Admission)
            for kind in admission.kinds
        }
        self._present: tuple[tuple[int, ...], list[ClusterProblem]] = ((), [])
        """The problems without a change, and the revisions of the tables that they are of."""

    def review(self, request: Request) -> Verdict:
        """Review one change of an object: allow it, with warnings, or deny it."""
        if request.operation not in ("CREATE", "UPDATE") or request.kind not in self._reviewed:
            return Verdict(allowed=True)
        kind, dialect, admission = self._reviewed[request.kind]
        if request.api_version not in kind.api_versions:
            served = " and ".join(kind.api_versions)
            text = f"{request.kind} {request.api_version} is not reviewed: {served} is"
            return Verdict(allowed=True, warnings=(text,))
        try:
            row = kind.decode(request.object)
        except InvalidObject as error:
            return _judge_rules(kind, request, error.errors)
        except (ValueError, TypeError) as error:
            return Verdict(allowed=False, message=f"is not a {kind.name}: {error}")
        warnings = [str(error) for error in kind.unknown_fields(request.object)]
        warnings += admission.warnings(dialect, row, _former(kind, request))
        problems, worse = self._compare(kind, row)
        warnings += (_sentence(problem) for problem in problems)
        if worse:
            message = _joined(map(_sentence, worse))
            return Verdict(allowed=False, message=message, warnings=_first(warnings))
        return Verdict(allowed=True, warnings=_first(warnings))

    def _compare(
        self,
        kind: Kind[Any],
        row: Any,  # noqa: ANN401
    ) -> tuple[list[ClusterProblem], list[ClusterProblem]]:
        """Return the problems that an object may have, and the problems that a change makes worse."""
        ref = ObjectRef(kind.name, row.metadata.namespace, row.metadata.name)
        table, nodes = self._tables.of(kind), self._tables.nodes
        trial = self._db.trial(table, nodes)
        table.upsert(trial, row)
        hypothetical = self._hypothetical_label_sets(kind, row, trial.snapshot())
        if not hypothetical:
            before = self._present_problems()
        else:
            without = self._db.trial(nodes)
            _add_nodes(without, nodes, hypothetical)
            before = self._problems(without.snapshot())
            _add_nodes(trial, nodes, hypothetical)
        after = self._problems(trial.snapshot())
        worse = [p for p in _worse(before, after) if p.problem.category in _DENIED]
        denied = {id(p) for p in worse}
        mine = [p for p in after if ref in p.problem.objects and id(p) not in denied]
        return mine, worse

    def _hypothetical_label_sets(
        self,
        kind: Kind[Any],
        row: Any,  # noqa: ANN401
        snapshot: Snapshot,
    ) -> list[dict[str, str]]:
        """Return the labels of nodes for an object that selects no present one, otherwise none."""
        selectors = node_selectors(kind, row)
        present = self._tables.nodes.all(snapshot)
        if any(selects(selectors, node.metadata.labels) for node in present):
            return []
        others = (
            node_selectors(other, stored)
            for other, *_ in self._reviewed.values()
            for stored in self._tables.of(other).all(snapshot)
        )
        return hypothetical_label_sets(selectors, others)

    def _present_problems(self) -> list[ClusterProblem]:
        """Return the problems as the tables are; kept until one of them changes."""
        snapshot = self._db.snapshot()
        revisions = tuple(table.revision(snapshot) for table in self._tables.resources)
        if revisions != self._present[0]:
            self._present = (revisions, self._problems(snapshot))
        return self._present[1]

    def _problems(self, snapshot: Snapshot) -> list[ClusterProblem]:
        nodes = [node.metadata.name for node in self._tables.nodes.all(snapshot)]
        return cluster_problems(self._feeding, snapshot, nodes, self._secrets_namespace)


def _add_nodes(txn: WriteTxn, nodes: Table[Any], listed: Iterable[Mapping[str, str]]) -> None:
    for labels in listed:
        nodes.upsert(txn, node_with(labels))


def _former(kind: Kind[Any], request: Request) -> Any:  # noqa: ANN401
    """Return the row of the object as it was; None at its creation, and if it has none."""
    try:
        return None if request.old_object is None else kind.decode(request.old_object)
    except (InvalidObject, ValueError, TypeError):
        return None


def _judge_rules(kind: Kind[Any], request: Request, errors: Sequence[FieldError]) -> Verdict:
    """Decide about an object that breaks rules: the former one may have broken the same ones."""
    broken = set(errors)
    try:
        if request.old_object is not None:
            kind.decode(request.old_object)
    except InvalidObject as error:
        if broken <= set(error.errors):
            return Verdict(allowed=True, warnings=_first(map(str, errors)))
    except (ValueError, TypeError):
        pass
    return Verdict(allowed=False, message=_joined(map(str, errors)))


def _first(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the first different sentences, and how many more there are."""
    first, more = _split(sentences)
    return (*first, more) if more else first


def _joined(sentences: Iterable[str]) -> str:
    """Return the first different sentences as one message, which ends with the number of the others."""
    first, more = _split(sentences)
    return bounded("; ".join(first), f"; {more}" if more else "")


def _split(sentences: Iterable[str]) -> tuple[tuple[str, ...], str]:
    distinct = tuple(dict.fromkeys(sentences))
    more = len(distinct) - MAX_SENTENCES
    return distinct[:MAX_SENTENCES], f"and {more} more" if more > 0 else ""


def _worse(
    before: Sequence[ClusterProblem], after: Sequence[ClusterProblem]
) -> list[ClusterProblem]:
    """Return the problems that were not there before, or that are of more objects or nodes now.

    Where not all problems are listed, their numbers are compared.
    """
    known: dict[tuple[str, str, str, str], list[ClusterProblem]] = {}
    for entry in before:
        known.setdefault(_subject(entry.problem), []).append(entry)
    worse: list[ClusterProblem] = []
    for entry in after:
        former = known.get(_subject(entry.problem), [])
        same = next((other for other in former if _is_no_larger(entry, other)), None)
        if same is None:
            worse.append(entry)
        else:
            former.remove(same)
    for entry in before if worse else ():
        if entry.problem.count > 1 and _count(after, entry) <= _count(before, entry):
            worse = [
                new
                for new in worse
                if new.problem.category != entry.problem.category or not _is_no_larger(new, entry)
            ]
    return worse


def _count(problems: Iterable[ClusterProblem], of: ClusterProblem) -> int:
    """Return the number of problems of these objects, or of some of them."""
    objects, category = set(of.problem.objects), of.problem.category
    return sum(
        entry.problem.count
        for entry in problems
        if entry.problem.category == category and objects.issuperset(entry.problem.objects)
    )


def _subject(problem: Problem) -> tuple[str, str, str, str]:
    """Return what a problem is about, without indexes: a change may move an element of a list.

    Of a conflict the beginning of the message, as one neighbour's is not that of another: "NEIGHBOR:
    FIELD differs: VALUES", or "SUBJECT: VALUES".
    """
    about = ""
    if problem.category == "conflict":
        title, differs, _ = problem.message.partition(" differs: ")
        about = title if differs else title.partition(": ")[0]
    return (problem.dialect, problem.category, _INDEX.sub("", problem.field), about)


def _is_no_larger(now: ClusterProblem, former: ClusterProblem) -> bool:
    return set(now.problem.objects) <= set(former.problem.objects) and set(now.nodes) <= set(
        former.nodes
    )


def _sentence(entry: ClusterProblem) -> str:
    problem = entry.problem
    where = f" ({enumerate_nodes(entry.nodes, SHOWN)})" if entry.nodes else ""
    return bounded(str(problem), where)
