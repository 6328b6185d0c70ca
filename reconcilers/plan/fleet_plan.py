"""The plans of all nodes: nodes with the same plan are one item, and problems have their nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from reconcilers.intent_tables import Json
from reconcilers.plan.changes import ENDS_SESSION, NodePlan
from reconcilers.plan.node_state import NodeState, ProblemState
from resources.enumeration import counted, enumerate_nodes

_INDEX: Final = re.compile(r"\[\d+\]")
SHOWN_NODES: Final = 3


class MaxWithdraw(msgspec.Struct, frozen=True):
    """The most routes that a plan may withdraw: a number, or a part of all that are advertised."""

    number: int
    percent: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the most routes that a plan may withdraw: ``N`` or ``N%``. Raises ValueError."""
        digits = text.removesuffix("%")
        if not digits.isascii() or not digits.isdigit() or (text != digits and int(digits) > 100):
            raise ValueError(f"not a number, nor a percentage: {text!r}")
        return cls(int(digits), text != digits)

    def __str__(self) -> str:
        """Return the text that it was read from."""
        return f"{self.number}{'%' * self.percent}"

    def exceeded(self, withdrawn: int, advertised: int) -> bool:
        """Return whether a plan withdraws too many routes."""
        return withdrawn > (advertised * self.number / 100 if self.percent else self.number)


class _Nodes(NamedTuple):
    """The nodes with a problem."""

    before: list[str]
    after: list[str]


class Plan:
    """The plans of nodes, joined as they come."""

    def __init__(self) -> None:
        self._groups: dict[bytes, tuple[NodePlan, list[str]]] = {}
        self._problems: dict[ProblemState, tuple[ProblemState, _Nodes]] = {}
        """By the problem without its place: indexes, file and line may change."""
        self._nodes = 0
        self._advertised = 0

    def add(self, node: str, before: NodeState, after: NodeState, plan: NodePlan) -> None:
        """Add the plan of a node, between its states before and after."""
        self._nodes += 1
        self._advertised += sum(len(before.routes_of(peer)) for peer in before.peers.values())
        if plan:
            key = msgspec.json.encode(plan)
            self._groups.setdefault(key, (plan, []))[1].append(node)
        for problem in before.problems:
            self._nodes_of(problem).before.append(node)
        for problem in after.problems:
            self._nodes_of(problem).after.append(node)

    def _nodes_of(self, problem: ProblemState) -> _Nodes:
        known = replace(problem, field=_INDEX.sub("", problem.field), where="")
        return self._problems.setdefault(known, (problem, _Nodes([], [])))[1]

    @property
    def groups(self) -> list[tuple[NodePlan, list[str]]]:
        """The different plans with their nodes, the plan of most nodes first."""
        return sorted(self._groups.values(), key=lambda group: (-len(group[1]), group[1][0]))

    def items(self) -> list[Json]:
        """Return the different plans of all nodes as JSON."""
        return [{"nodes": nodes, **msgspec.to_builtins(plan)} for plan, nodes in self.groups]

    def problems(self) -> list[Json]:
        """Return the problems of the plans of all nodes: ``new``, ``solved`` or ``remains``."""
        items = []
        for problem, nodes in self._problems.values():
            before, after = nodes
            where = f" ({problem.where})" if problem.where else ""
            new = [node for node in after if node not in before]
            change = "new" if new else "remains" if after else "solved"
            items.append(
                {
                    "objects": list(filter(None, problem.objects)),
                    "field": problem.field,
                    "message": problem.message + where,
                    "change": change,
                    "nodes": new or after or before,
                }
            )
        return sorted(items, key=lambda item: (item["objects"], item["field"], item["message"]))

    def summary(self) -> Json:
        """Return the numbers of changes of the plans by their kind, over all nodes."""
        instances: Counter[str] = Counter()
        sessions: Counter[str] = Counter()
        routes: Counter[str] = Counter()
        kernel: Counter[str] = Counter()
        changed = 0
        for plan, nodes in self._groups.values():
            changed += len(nodes)
            for counter, changes in (
                (instances, plan.instances),
                (sessions, plan.sessions),
                (routes, plan.routes),
                (kernel, plan.kernel),
            ):
                for change in changes:
                    counter[change.change] += len(nodes)
        return {
            "nodes": self._nodes,
            "changedNodes": changed,
            "advertisedRoutes": self._advertised,
            "instances": dict(sorted(instances.items())),
            "sessions": dict(sorted(sessions.items())),
            "routes": dict(sorted(routes.items())),
            "kernel": dict(sorted(kernel.items())),
        }

    def violations(self, max_withdraw: MaxWithdraw | None, *, no_reset: bool) -> Iterator[Json]:
        """Yield an error for each limit that the plans exceed."""
        withdrawn = self.summary()["routes"].get("withdraw", 0)
        if max_withdraw is not None and max_withdraw.exceeded(withdrawn, self._advertised):
            text = (
                f"{withdrawn} of {counted(self._advertised, 'route')} would be withdrawn, "
                f"--max-withdraw is {max_withdraw}"
            )
            yield {"code": "MaxWithdraw", "message": text}
        ending = {
            (session.instance, session.peer, node): session.change
            for plan, nodes in self._groups.values()
            for session in plan.sessions
            if session.change in ENDS_SESSION
            for node in nodes
        }
        if no_reset and ending:
            nodes = sorted({node for *_, node in ending})
            count = f"{len(ending)} session{'s' * (len(ending) != 1)}"
            text = f"{count} would end ({enumerate_nodes(nodes, SHOWN_NODES)}): --no-reset"
            yield {"code": "NoReset", "message": text}
