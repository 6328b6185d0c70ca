"""A dialect's results depend on its objects and on what it remembers, not on what it compiled before.

A program that has followed a random history of objects has the results of a program that starts now
with the same memory: of `Dialect.compile`, and of the operator's part.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import Dialect, Feeding, NodeContext, NodeIntent
from reconcilers.intent.dialect_intents import DialectIntents
from reconcilers.intent_tables import IntentTables
from reconcilers.operator import Planner
from reconcilers.sliced_work import finish
from resources.errors import ResourceError
from resources.option_declarations import Options
from resources.tables import Tables
from statedb import Database
from tests.support import plain_yaml
from waggle.dialects import DIALECTS

TESTS = Path(__file__).parents[2]
CASES = {
    "antrea": ("reconcilers/antrea/cases.json", "reconcilers/antrea/more_cases.json"),
    "frrk8s": ("cases/frrk8s_metallb.json", "cases/frrk8s_metallb_more.json"),
    "metallb": ("cases/frrk8s_metallb.json", "cases/frrk8s_metallb_more.json"),
    "ovnk": ("reconcilers/ovnk/cases.json",),
}
STEPS = 25
Json = dict[str, Any]


class Group(NamedTuple):
    """Dialects that are on together, with options that are not the defaults."""

    names: tuple[str, ...]
    options: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - a constant

    def of(self, dialect: type[Dialect], options: type[Options]) -> Options:
        fields = {field.name for field in msgspec.structs.fields(options)}
        own = self.options.get(dialect.name, {})
        return options(**{name: value for name, value in own.items() if name in fields})


GROUPS = (
    Group(("cilium",)),
    Group(("antrea",)),
    Group(("frrk8s",), {"frrk8s": {"on_conflict": "keep"}}),
    Group(("frrk8s",), {"frrk8s": {"on_conflict": "clear"}}),
    Group(("frrk8s", "metallb"), {"frrk8s": {"on_conflict": "isolate"}}),
    Group(("frrk8s", "metallb"), {"frrk8s": {"on_conflict": "keep"}}),
    Group(("frrk8s", "ovnk"), {"ovnk": {"mode": "generate", "evpn": True}}),
    Group(
        ("frrk8s", "metallb", "ovnk"),
        {"frrk8s": {"on_conflict": "keep"}, "ovnk": {"mode": "generate"}},
    ),
)


@functools.cache
def cases(name: str) -> tuple[tuple[Json, ...], ...]:
    """Return the objects of each case of a dialect."""
    if name in CASES:
        texts = [json.loads((TESTS / path).read_text()) for path in CASES[name]]
        return tuple(
            tuple(text["common"][one] if isinstance(one, str) else one for one in case["objects"])
            for text in texts
            for case in text["cases"]
        )
    paths = sorted((TESTS / "scenarios" / name).rglob("*.yaml"))
    documents = (tuple(plain_yaml.load_all(path.read_text())) for path in paths)
    return tuple(
        objects
        for of_file in documents
        if (objects := tuple(one for one in of_file if isinstance(one, dict) and "kind" in one))
    )


class Program:
    """The dialects of a program that has just started: for one node, and for the cluster."""

    def __init__(
        self, group: Group, database: Database, tables: Tables, intent: IntentTables
    ) -> None:
        types = [entry.load() for entry in DIALECTS if entry.name in group.names]
        self.tables = tables
        self.of_node = [type_(tables, group.of(type_, type_.options_type)) for type_ in types]
        self.feeding = Feeding(self.of_node)
        of_cluster = [
            type_(tables, group.of(type_, type_.operator_options_type)) for type_ in types
        ]
        self.planner = Planner(database, of_cluster, "kube-system")
        self.intent = intent
        self.intents = DialectIntents(tables, intent, self.feeding, _fail)

    def remember(self, other: Program) -> None:
        """Take what another program remembers."""
        self.intents = DialectIntents(
            self.tables, self.intent, self.feeding, _fail, dict(other.intents.states)
        )
        self.planner._last = dict(other.planner._last)


def _fail(_: str, error: Exception) -> None:
    raise error


class World:
    """Objects of a cluster that come and go."""

    def __init__(self, group: Group, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.group = group
        types = [entry.load() for entry in DIALECTS if entry.name in group.names]
        self.database = Database()
        self.tables = Tables(self.database, kinds_of(types))
        self.intent = IntentTables(self.database)
        chosen = [
            case
            for name in group.names
            for case in self.rng.sample(cases(name), 1 + 2 // len(group.names))
        ]
        self.pool = [one for case in chosen for one in case if self._kind(one) is not None]
        nodes = [one["metadata"]["name"] for one in self.pool if one["kind"] == "Node"]
        self.node = self.rng.choice(nodes) if nodes else "n1"
        self.present: dict[tuple[str, str, str], Json] = {}
        for value in self.pool:
            self.put(value)

    def _kind(self, value: Json) -> Any:  # noqa: ANN401
        return self.tables.kinds.named(value["kind"])

    def step(self) -> None:
        """Create, replace or delete a few objects."""
        for _ in range(self.rng.choice((1, 1, 2, 6))):
            if self.present and self.rng.random() < 0.25:
                self._delete(self.rng.choice(list(self.present)))
            else:
                self.put(self.rng.choice(self.pool))

    def put(self, value: Json) -> None:
        kind = self._kind(value)
        table = self.tables.of(kind)
        try:
            row = kind.decode(value)
        except ResourceError:
            return
        with self.database.write(table) as txn:
            table.upsert(txn, row)
        self.present[(value["kind"], *row.key)] = value

    def _delete(self, key: tuple[str, str, str]) -> None:
        table = self.tables.of(self._kind(self.present.pop(key)))
        with self.database.write(table) as txn:
            table.delete(txn, key[1:])


def compiled(program: Program, world: World) -> dict[str, Json]:
    """Return what each dialect compiles, as a value that can be compared."""
    snapshot = world.database.snapshot()
    tables = frozenset(world.database.tables)
    context = NodeContext(world.node)
    finish(program.intents.compile(snapshot, context, tables, world.group.names))
    return {name: _comparable(intent) for name, intent in program.intents.compiled.items()}


def _comparable(intent: NodeIntent) -> Json:
    fields = msgspec.structs.asdict(intent)
    del fields["state"]
    fields["followed"] = {table.name for table in intent.followed}
    del fields[
        "feed"
    ]  # what it has led to is in the outcomes, and in the intent of the fed dialect
    fields["outcomes"] = {
        name: [outcome.problems, outcome.last_good] for name, outcome in intent.outcomes.items()
    }
    return fields


def operated(program: Program, world: World) -> dict[str, Json]:
    """Return what the operator's part of each dialect returns, without its memory."""
    intents = finish(program.planner.operate(world.database.snapshot()))
    found = {}
    for name, intent in intents.items():
        fields = msgspec.structs.asdict(intent)
        for field in ("state", "outcome"):
            del fields[field]
        assert not [one for one in intent.problems if "cannot be operated" in one.message]
        found[name] = fields
    return found


def differences(name: str, ours: Json, theirs: Json) -> Iterator[str]:
    for field, value in ours.items():
        if value != theirs[field]:
            yield f"{name}.{field}:\n  {value}\n  {theirs[field]}"


def check(label: str, ours: dict[str, Json], theirs: dict[str, Json]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert "\n".join(differences(name, ours[name], theirs[name])) == "", label


def _id(group: Group) -> str:
    own = [str(value) for values in group.options.values() for value in values.values()]
    return "-".join((*group.names, *own))


def written(intents: Iterable[Json], rng: random.Random) -> Sequence[Json]:
    """Return some of the objects that the operator writes."""
    contents = [
        generated.content
        for intent in intents
        for generated in intent["generated"]
        if generated.object in intent["outdated"]
    ]
    return rng.sample(contents, rng.randint(0, len(contents)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("group", GROUPS, ids=_id)
def test_a_program_that_has_compiled_a_history_has_the_results_of_a_fresh_one(
    group: Group, seed: int
) -> None:
    world = World(group, seed)
    program = Program(group, world.database, world.tables, world.intent)
    for step in range(STEPS):
        world.step()
        fresh = Program(group, world.database, world.tables, world.intent)
        fresh.remember(program)
        check(f"compile, step {step}", compiled(program, world), compiled(fresh, world))
        ours = operated(program, world)
        check(f"operate, step {step}", ours, operated(fresh, world))
        for content in written(ours.values(), world.rng):
            world.put(json.loads(json.dumps(content)))
