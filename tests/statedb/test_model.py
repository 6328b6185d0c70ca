"""The database against a model of dictionaries: writes, aborts, old snapshots, iterators."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from statedb import ChangeIterator, Database, Snapshot
from tests.statedb.rows import Row, rows_table

NAMES = st.sampled_from("abcd")
COLORS = st.lists(st.sampled_from(["red", "green", "blue"]), max_size=2, unique=True).map(tuple)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from([0, 1]), NAMES, NAMES, st.one_of(st.none(), COLORS)), max_size=6
)
Model = dict[tuple[str, str], Row]


class Abort(Exception):  # noqa: N818
    """Ends a transaction on purpose."""


class DatabaseMachine(RuleBasedStateMachine):
    """Two tables, any number of readers."""

    snapshots: Bundle[tuple[Snapshot, list[Model]]] = Bundle("snapshots")
    iterators: Bundle[tuple[int, ChangeIterator[Row], Model]] = Bundle("iterators")

    def __init__(self) -> None:
        super().__init__()
        self.db = Database()
        self.tables = [rows_table(self.db, "one"), rows_table(self.db, "two")]
        self.models: list[Model] = [{}, {}]
        self.revisions = [0, 0]

    @rule(operations=OPERATIONS, abort=st.booleans())
    def write(
        self,
        operations: list[tuple[int, str, str, tuple[str, ...] | None]],
        abort: bool,
    ) -> None:
        models = [dict(model) for model in self.models]
        revisions = list(self.revisions)
        try:
            with self.db.write(*self.tables) as txn:
                for number, space, name, colors in operations:
                    table, model = self.tables[number], models[number]
                    if colors is None:
                        assert table.delete(txn, (space, name)) == model.pop((space, name), None)
                    else:
                        row = Row(space, name, colors)
                        assert table.upsert(txn, row) == model.get((space, name))
                        model[space, name] = row
                    assert set(table.all(txn)) == set(model.values())
                if abort:
                    raise Abort  # noqa: TRY301
        except Abort:
            return
        self.models = models
        for number, table in enumerate(self.tables):
            assert table.revision(self.db.snapshot()) >= revisions[number]
            self.revisions[number] = table.revision(self.db.snapshot())

    @rule(target=snapshots)
    def take(self) -> tuple[Snapshot, list[Model]]:
        return self.db.snapshot(), [dict(model) for model in self.models]

    @rule(held=snapshots)
    def read_again(self, held: tuple[Snapshot, list[Model]]) -> None:
        snapshot, models = held
        for table, model in zip(self.tables, models, strict=True):
            assert set(table.all(snapshot)) == set(model.values())
            assert table.count(snapshot) == len(model)
            for space in "abcd":
                wanted = {row for row in model.values() if row.space == space}
                assert set(table.prefix(snapshot, "key", (space,))) == wanted
                for color in ("red", "green", "blue"):
                    found = list(table.find(snapshot, "color", (space, color)))
                    assert set(found) == {row for row in wanted if color in row.colors}
                    assert len(found) == len(set(found))

    @rule(target=iterators, number=st.sampled_from([0, 1]))
    def follow(self, number: int) -> tuple[int, ChangeIterator[Row], Model]:
        return number, self.tables[number].changes(self.db), {}

    @rule(following=iterators)
    def catch_up(self, following: tuple[int, ChangeIterator[Row], Model]) -> None:
        number, iterator, replayed = following
        last = 0
        for change in iterator.next(self.db.snapshot()):
            assert change.revision > last
            last = change.revision
            if change.deleted:
                replayed.pop((change.row.space, change.row.name), None)
            else:
                replayed[change.row.space, change.row.name] = change.row
        assert replayed == self.models[number]

    @invariant()
    def the_present_equals_the_model(self) -> None:
        snapshot = self.db.snapshot()
        for table, model in zip(self.tables, self.models, strict=True):
            assert {(r.space, r.name): r for r in table.all(snapshot)} == model


TestDatabase = DatabaseMachine.TestCase
