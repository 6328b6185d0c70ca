"""The view of a command on all nodes: one list, the worst first, and a summary of it.

Nodes without an answer are in ``errors``, and the exit status is 3. What an agent answers is read
through the columns before it is shown: an answer that no column understands is none.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from cells.api.client import Client
from cells.api.transport import AgentError
from waggle import output
from waggle.ask_agent import has_instance, unknown_among
from waggle.dialects import DIALECTS
from waggle.fleet.ask import (
    Answers,
    Ask,
    Fleet,
    cluster_of,
    fleet_of,
    in_cluster,
    wanted_nodes,
)
from waggle.fleet.flags import usage_error
from waggle.fleet.statuses import StatusSessions, read_statuses
from waggle.fleet.summary import RECEIVED_AT, summarize
from waggle.tables import Column

if TYPE_CHECKING:
    from cells.api.pod_transport import ClusterLoop
    from waggle.fleet.by_objects import ByObjects

Item: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]
T = TypeVar("T")
OF_ANSWERS: Final = "of the nodes that answered: "
OF_OBJECTS: Final = "by the objects of the cluster: "
"""In front of what no node has, where some have not answered, or none has."""


class Searched(NamedTuple):
    """Agents that have answered, and the objects of other nodes: both have the nearest names."""

    fleet: Fleet | None
    answers: Mapping[str, Answer]
    """Of agents and objects, by node."""
    objects: ByObjects | None
    offline: Sequence[str]
    """The nodes whose objects have answered."""
    sessions: Sequence[Item]
    """Of status objects."""
    missing: Sequence[str]
    """Sentences of what each node answers that it does not have."""

    def read(
        self, request: Ask[T], of_objects: Callable[[ByObjects, str], T] | None = None
    ) -> list[T]:
        """Return what agents answer to another request, and the objects of the other nodes."""
        answers = [] if self.fleet is None else [*self.fleet.ask(request).by_node.values()]
        if self.objects is not None and of_objects is not None:
            answers += [of_objects(self.objects, node) for node in self.offline]
        return answers

    def peers(self) -> list[Item]:
        """Return the peers of all nodes: of agents, of objects and of status objects."""
        answers = self.read(
            lambda client: _named(client.get("/v1/peers", {})),
            lambda objects, node: objects.peers(node),
        )
        return [*(item for answer in answers for item in answer), *self.sessions]

    def unknown_peer(self, peer: str | None, instance: str | None) -> str | None:
        """Return the sentence where a peer or instance is what each node does not have."""
        unknown = {
            error.get("unknown")
            for answer in self.answers.values()
            for error in _not_found_errors(answer)
        }
        if not self.missing or not unknown <= {"peer", "instance"}:
            return None
        # A node that does not have the peer has the instance.
        has_peer = "peer" in unknown
        return unknown_among(peer if has_peer else None, instance, self.peers(), lambda: has_peer)

    def has_instance(self, instance: str | None) -> bool:
        """Return whether the agent of some node has an instance."""
        return instance is not None and any(
            self.read(lambda client: has_instance(client, instance))
        )


def _named(answer: Answer) -> list[Item]:
    """Return the names of peers. Raises any error for an answer that has none."""
    members = ("name", "instance")
    return [
        {**{name: str(item[name]) for name in members}, "address": str(item.get("address") or "")}
        for item in answer["items"]
    ]


class FleetView(NamedTuple):
    """The view of one command."""

    kind: str
    """Of the list."""
    request: Callable[[Client], Answer]
    """Returns the answer of one agent."""
    columns: Callable[[datetime], Sequence[Column]]
    order: Callable[[list[Item]], list[Item]]
    """Returns the items with the worst ones first."""
    sessions: Callable[[Item], Sequence[Mapping[str, Any]]] | None = None
    """Returns the sessions of an item; None where it has none."""
    of_statuses: Callable[[str, list[Item]], list[Item]] | None = None
    """Returns the items of a node that did not answer, of its sessions in status objects."""
    of_objects: Callable[[ByObjects, str], Answer] | None = None
    """Returns the answer for a node that did not answer, by the objects of the cluster. Raises
    ValueError for what no agent would answer."""
    of_objects_columns: Sequence[Column] = ()
    """Columns of such items."""
    only_agents: str = ""
    """Why no object has what this view shows, where neither is given."""
    is_bad: Callable[[Item], bool] = lambda _: False
    """Whether an item makes the exit status 1."""
    prepare: Callable[[Item], Item] = lambda item: item
    """Returns an item of an agent as it is shown."""
    selects: Callable[[Item], bool] = lambda _: True
    """Whether the flags of the command select an item of a status object."""
    empty: str = "nothing to show"
    absent: Callable[[Searched], str | None] | None = None
    """Returns the sentence that no node has what the flags name, with the nearest names of all nodes;
    None for that of the agents. Called where there are no items and some nodes have been searched."""
    beside: Mapping[str, tuple[str, Sequence[Column]]] = {}
    """Lists of an answer beside its items, by member: each with its title and columns."""


class Offline(NamedTuple):
    """The answer that the objects of the cluster give for nodes that did not answer."""

    by_node: Mapping[str, Answer]
    notes: list[str]
    objects: ByObjects | None = None


def show_fleet(args: argparse.Namespace, view: FleetView) -> int:
    """Ask all agents and print; returns the exit status."""
    if text := usage_error(args):
        output.complain(args.prog, text)
        return output.EXIT_USAGE
    answers: Answers[Answer]
    fleet = None
    statuses, offline = StatusSessions({}, []), Offline({}, [])
    try:
        with cluster_of(args) as loop:
            if args.from_statuses:
                if view.only_agents:
                    output.complain(args.prog, f"--from-statuses: {view.only_agents}")
                    return output.EXIT_USAGE
                answers = Answers({}, [])
            else:
                fleet = fleet_of(args, loop)
                answers = fleet.ask(lambda client: checked(view, view.request(client)))
            if not view.only_agents and (args.from_statuses or answers.failures):
                try:
                    statuses, offline = _without_agents(args, view, loop, answers)
                except AgentError as error:
                    if args.from_statuses:
                        raise  # there is nothing else to show
                    statuses.errors.append(str(error))
            items = _items(args, view, answers, statuses, offline)
            missing = _missing_everywhere({**answers.by_node, **offline.by_node})[:1]
            if not items and view.absent is not None:
                missing = _absent(args, view.absent, fleet, answers, statuses, offline) or missing
    except AgentError as error:
        return _refused(args, view, error)
    if answers.failures:
        whose = OF_ANSWERS if answers.by_node else OF_OBJECTS
        missing = [f"{whose}{text}" for text in missing]
    return _print(args, view, answers, statuses, offline, items, missing)


def _absent(
    args: argparse.Namespace,
    absent: Callable[[Searched], str | None],
    fleet: Fleet | None,
    answers: Answers[Answer],
    statuses: StatusSessions,
    offline: Offline,
) -> list[str]:
    """Return the sentence that no node has what the flags name, if they name something."""
    both = {**answers.by_node, **offline.by_node}
    wanted = wanted_nodes(args) or statuses.by_node
    sessions = [item for node in wanted for item in statuses.by_node.get(node, ())]
    if not both and not sessions:
        return []  # no node was searched
    if fleet is not None:
        fleet = fleet.only(answers.by_node)
    missing = _missing_everywhere(both)
    text = absent(Searched(fleet, both, offline.objects, [*offline.by_node], sessions, missing))
    return [] if text is None else [text]


def _without_agents(
    args: argparse.Namespace, view: FleetView, loop: ClusterLoop, answers: Answers[Answer]
) -> tuple[StatusSessions, Offline]:
    """Return what the API server has of the nodes that did not answer. Raises `AgentError`."""
    of_objects, dialects = view.of_objects, DIALECTS.load()
    reading = read_statuses(loop.connection, dialects, claims=of_objects is not None)
    statuses = in_cluster(loop, reading)
    if of_objects is None:
        return statuses, Offline({}, [])
    from waggle.fleet.by_objects import ByObjects, read_intent

    objects = ByObjects(read_intent(loop, args.namespace, dialects), statuses)
    failed = [failure.node for failure in answers.failures]
    nodes = objects.nodes(wanted_nodes(args)) if args.from_statuses else failed
    try:
        by_node = {node: of_objects(objects, node) for node in nodes}
    except ValueError as error:
        raise AgentError("BadRequest", str(error)) from None
    left = statuses.by_node.keys() - objects.all_nodes if args.from_statuses else ()
    return statuses, Offline(by_node, list(objects.notes([*nodes, *sorted(left)])), objects)


_STATUS = {"NotFound": output.EXIT_NOT_FOUND, "BadRequest": output.EXIT_USAGE}


def _refused(args: argparse.Namespace, view: FleetView, error: AgentError) -> int:
    output.fail(args, view.kind, error.code, str(error))
    return _STATUS.get(error.code, output.EXIT_ERROR)


def checked(view: FleetView, answer: Answer) -> Answer:
    """Return an answer whose items can be shown. Raises any error for another answer."""
    now = datetime.now(UTC)
    columns = view.columns(now)
    items = [{**view.prepare({**item}), "node": ""} for item in answer["items"]]
    for item in items:
        output.row(columns, item)
        view.is_bad(item)
    view.order(items)
    for member, (_, beside) in view.beside.items():
        for item in answer.get(member, ()):
            output.row(beside, {**item, "node": ""})
    checked = {**answer, "items": items, RECEIVED_AT: now}
    # All that is done with answers later, with this one alone.
    _missing_everywhere({"": checked})
    summarize({"": checked}, (), now, _sessions(view, items))
    return checked


def _sessions(view: FleetView, items: Iterable[Item]) -> list[Mapping[str, Any]] | None:
    sessions = view.sessions
    return None if sessions is None else [session for item in items for session in sessions(item)]


def in_order(view: FleetView, items: list[Item], notes: list[str]) -> list[Item]:
    """Return the items in order; by node where two agents differ in what a member is."""
    try:
        return view.order(items)
    except TypeError as error:
        notes.append(
            f"the answers of agents cannot be compared, and are in order of nodes: {error}"
        )
        return sorted(items, key=lambda item: str(item["node"]))


def _items(
    args: argparse.Namespace,
    view: FleetView,
    answers: Answers[Answer],
    statuses: StatusSessions,
    offline: Offline,
) -> list[Item]:
    """Return the items of all nodes."""
    items = [
        # The name of the node is that of its Pod, whatever the agent has for it.
        {**item, "node": node}
        for node, answer in (*answers.by_node.items(), *offline.by_node.items())
        for item in answer["items"]
    ]
    failed = {failure.node for failure in answers.failures}
    wanted = statuses.by_node if args.from_statuses else failed & statuses.by_node.keys()
    selected = set(args.node) if isinstance(args.node, list) else None
    for node in wanted:
        if view.of_statuses is not None and (selected is None or node in selected):
            items += filter(view.selects, view.of_statuses(node, statuses.by_node[node]))
    return items


def _print(
    args: argparse.Namespace,
    view: FleetView,
    answers: Answers[Answer],
    statuses: StatusSessions,
    offline: Offline,
    items: list[Item],
    missing: Sequence[str],
) -> int:
    """Print all items, failures, what no node has and the summary; returns the exit status."""
    now = datetime.now(UTC)
    failures = answers.failures
    failed = {failure.node for failure in failures}
    notes = [*statuses.errors, *offline.notes]
    items = in_order(view, items, notes)
    nodes = {*failed, *statuses.by_node, *offline.by_node} if args.from_statuses else failed
    beside = {
        member: [
            {**item, "node": node}
            for node, answer in answers.by_node.items()
            for item in answer.get(member, ())
        ]
        for member in view.beside
    }
    summary = summarize(answers.by_node, nodes, now, _sessions(view, items))
    if args.output in output.TABLES:
        if items:
            more = view.of_objects_columns if any(map(_by_objects, items)) else ()
            output.table([*view.columns(now), *more], items, args)
        for member, (title, columns) in view.beside.items():
            if beside[member]:
                print(f"\n{title}" if items else title)
                output.table(columns, beside[member], args)
        for failure in failures:
            output.complain(args.prog, f"{failure.node}: {failure.message}")
        for text in (*notes, *missing, *(() if items or missing else (view.empty,))):
            output.complain(args.prog, text)
        for text in summary.lines():
            output.complain(args.prog, text)
    else:
        errors = [failure.item() for failure in failures]
        errors += [{"code": "NotFound", "message": text} for text in missing]
        document = output.document(view.kind, items, errors)
        document |= {member: listed for member, listed in beside.items() if listed}
        output.dump(document | {"notes": notes, "summary": summary.members()}, args.output)
    if failures or (args.from_statuses and statuses.errors):
        return output.EXIT_INCOMPLETE
    if missing:
        return output.EXIT_NOT_FOUND
    return output.EXIT_ERROR if any(map(view.is_bad, items)) else output.EXIT_OK


def _by_objects(item: Item) -> bool:
    return "basis" in item


def _missing_everywhere(answers: Mapping[str, Answer]) -> list[str]:
    """Return what is missing on every node that answered: it is no node's failure.

    The longest sentence is first: where a node has no near name, its sentence has none.
    """
    missing = [
        [error["message"] for error in _not_found_errors(answer)] for answer in answers.values()
    ]
    texts = {text for of_node in missing for text in of_node}
    return sorted(texts, key=_length) if missing and all(missing) else []


def _not_found_errors(answer: Answer) -> list[Item]:
    return [error for error in answer.get("errors", ()) if error.get("code") == "NotFound"]


def _length(text: str) -> tuple[int, str]:
    return -len(text), text


def worst_sessions_first(items: Iterable[Item]) -> list[Item]:
    """Return sessions: down sessions first, the node with most of them leading; then the others."""
    listed = list(items)
    down: dict[str, int] = {}
    for item in listed:
        if item["state"] != "Established":
            down[item["node"]] = down.get(item["node"], 0) + 1

    def order(item: Item) -> tuple[Any, ...]:
        is_up = item["state"] == "Established"
        worst = 0 if is_up else -down[item["node"]]
        return is_up, worst, item["node"], *output.peer_order(item)

    return sorted(listed, key=order)
