"""Parameters of constructors are resolved by type; what does not fit is an error of composition."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pytest

from cells.hive import (
    Cell,
    CompositionError,
    DisabledCellError,
    Group,
    Health,
    HealthTree,
    Late,
    Options,
    Readiness,
    Wiring,
    load,
    provide,
)
from cells.hive.cell import type_name
from cells.hive.hive import Hive, Shutdown
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.hive.show import CellView, dot, running_views, tree, views, with_wiring
from tests.support.cells import supply


class Port(Protocol):
    """What others depend on."""

    rate: int

    def send(self) -> str: ...


class Line:
    """Has what `Port` requires."""

    rate: int

    def __init__(self) -> None:
        self.rate = 3

    def send(self) -> str:
        return "sent"


class Check(Protocol):
    def check(self) -> str: ...


class LineCheck:
    def __init__(self, port: Port) -> None:
        self._port = port

    def check(self) -> str:
        return f"{self._port.send()} at {self._port.rate}"


class OtherCheck:
    def check(self) -> str:
        return "other"


class Runner:
    def __init__(self, checks: Group[Check]) -> None:
        self.checks = checks


class LateRunner:
    def __init__(self, checks: Late[Group[Check]]) -> None:
        self.checks = checks


class Impatient:
    def __init__(self, checks: Late[Group[Check]]) -> None:
        checks()


class NeedsRunner:
    """Both a member of the group and a user of its receiver."""

    def __init__(self, runner: LateRunner) -> None:
        self.runner = runner

    def check(self) -> str:
        return "needs the runner"


class EagerMember:
    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def check(self) -> str:
        return ""


class A:
    def __init__(self, b: B) -> None: ...


class B:
    def __init__(self, a: A) -> None: ...


class Choosy:
    """Parameters of every form."""

    def __init__(
        self,
        port: Port | None,
        rng: random.Random | None = None,
        clock: Callable[[], float] = float,
        names: Sequence[str] = ("a",),
    ) -> None:
        self.port, self.rng, self.clock, self.names = port, rng, clock, names


class PartOptions(Options, frozen=True):
    size: int = 7


class Given:
    """Takes everything that the hive gives."""

    def __init__(
        self,
        health: Health,
        jobs: Jobs,
        lifecycle: Lifecycle,
        readiness: Readiness,
        shutdown: Shutdown,
        options: PartOptions,
    ) -> None:
        self.health, self.options = health, options
        self.common = (jobs, lifecycle, readiness, shutdown)


def untyped(port) -> Line:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return Line()


async def later() -> Line:
    return Line()


def unnamed() -> Line:
    return Line()


def numbers(port: Port) -> list[int]:
    return [port.rate]


def words() -> list[str]:
    return ["one"]


def two_checks() -> tuple[Check, ...]:
    return (OtherCheck(), OtherCheck())


class Reader:
    def __init__(self, numbers: list[int], words: list[str]) -> None:
        self.read = (numbers, words)


LINE = Cell(name="line", description="A line.", wiring=Wiring(provides=(provide(Line, as_=Port),)))


def part(name: str, options: type[Options] = Options, **constructors: Any) -> Cell:  # noqa: ANN401
    return Cell(name=name, description=name, options=options, wiring=Wiring(**constructors))


def build(*cells: Cell, off: Sequence[str] = ()) -> Hive:
    return Hive(cells, load(cells, flags={"disable_cell": list(off)}))


def test_a_constructor_gets_what_its_cell_is_given() -> None:
    hive = build(part("a", options=PartOptions, invokes=(Given,)))
    assert hive.get(Given).health.path == ("a",)
    assert hive.get(Given).options.size == 7
    assert hive.get(Given).common[1:3] == (hive.lifecycle, hive.readiness)


def test_a_protocol_is_resolved_to_the_class_that_is_provided_as_it() -> None:
    hive = build(LINE, part("b", provides=(LineCheck,)))
    assert hive.get(LineCheck).check() == "sent at 3"


def test_a_function_provides_its_return_annotation_also_a_generic_one() -> None:
    reader = build(LINE, part("c", private=(numbers, words), invokes=(Reader,))).get(Reader)
    assert reader.read == ([3], ["one"])


def test_one_constructor_of_a_cell_makes_one_value() -> None:
    checked = part(
        "b",
        provides=(LineCheck,),
        invokes=(LineCheck,),
        contributes=(provide(LineCheck, as_=Check),),
    )
    hive = build(LINE, checked, part("d", provides=(Runner,)))
    assert hive.get(Runner).checks == (hive.get(LineCheck),)


def test_a_group_has_the_contributions_of_the_enabled_cells_in_their_order() -> None:
    first = part("first", contributes=(two_checks,))
    second = part("second", contributes=(provide(LineCheck, as_=Check),))
    cells = (part("d", provides=(Runner,)), first, second, LINE)
    checks = build(*cells).get(Runner).checks
    assert [check.check() for check in checks] == ["other", "other", "sent at 3"]
    assert [check.check() for check in build(*cells, off=["first"]).get(Runner).checks] == [
        "sent at 3"
    ]
    assert build(*cells, off=["first", "second"]).get(Runner).checks == ()


def test_a_late_group_may_have_members_that_need_its_receiver() -> None:
    member = part("member", contributes=(provide(NeedsRunner, as_=Check),))
    hive = build(part("d", provides=(LateRunner,), invokes=(LateRunner,)), member)
    (check,) = hive.get(LateRunner).checks()
    assert isinstance(check, NeedsRunner)
    assert check.runner is hive.get(LateRunner)


def test_a_constructor_cannot_use_a_late_value() -> None:
    with pytest.raises(CompositionError, match="before all cells are constructed"):
        build(part("d", invokes=(Impatient,)))


def test_an_optional_value_of_a_disabled_cell_is_none_and_defaults_stay() -> None:
    choosy = part("c", provides=(Choosy,))
    assert isinstance(build(LINE, choosy).get(Choosy).port, Line)
    found = build(LINE, choosy, off=["line"]).get(Choosy)
    assert (found.port, found.rng, found.clock, found.names) == (None, None, float, ("a",))
    seeded = part("rng", provides=(supply(random.Random(3)),))  # noqa: S311 - a test's generator
    assert build(LINE, choosy, seeded).get(Choosy).rng is not None


def test_a_private_value_is_for_its_cell_alone() -> None:
    own = part("own", private=(provide(Line, as_=Port),), provides=(LineCheck,))
    assert build(own).get(LineCheck).check() == "sent at 3"
    with pytest.raises(CompositionError, match="needs Port"):
        build(own, part("other", invokes=(Runner, numbers)))


def test_of_two_providers_the_enabled_one_is_used() -> None:
    class Spare(Line):
        pass

    spare = part("spare", provides=(provide(Spare, as_=Port),))
    user = part("b", provides=(LineCheck,))
    with pytest.raises(CompositionError, match="cells line and spare both provide Port"):
        build(LINE, spare, user)
    assert build(LINE, spare, user, off=["line"]).get(LineCheck).check() == "sent at 3"
    assert build(LINE, spare, user, off=["spare"]).get(LineCheck).check() == "sent at 3"
    with pytest.raises(DisabledCellError, match="enable line"):
        build(LINE, spare, user, off=["line", "spare"])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [part("b", invokes=(LineCheck,))],
            "cell b needs Port (parameter port of LineCheck), which no cell provides",
        ),
        ([part("b", provides=(Line, unnamed))], "cell b provides Line twice"),
        (
            [part("a", provides=(A,)), part("b", provides=(B,))],
            "constructors need each other: A of a -> B of b -> A of a",
        ),
        (
            [part("d", provides=(Runner,), contributes=(provide(EagerMember, as_=Check),))],
            "constructors need each other: Runner of d -> EagerMember of d -> Runner of d",
        ),
        ([part("b", invokes=(untyped,))], "parameter port of untyped has no type"),
    ],
)
def test_cells_that_do_not_fit_are_an_error_before_anything_is_constructed(
    cells: Sequence[Cell], message: str
) -> None:
    with pytest.raises(CompositionError) as caught:
        build(*cells)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "shown"), [("spare-line", "spare-line"), ("spare_line", "spare-line and spare_line")]
)
def test_cells_of_one_name_are_refused_with_both_descriptions(name: str, shown: str) -> None:
    cells = (
        Cell(name="spare-line", description="First."),
        Cell(name=name, description="Second."),
    )
    message = f"two cells have one name, {shown}: 'First.' and 'Second.'"
    with pytest.raises(CompositionError) as caught:
        load(cells)
    assert str(caught.value) == message
    with pytest.raises(CompositionError) as caught:
        Hive(cells, load(cells[:1]))
    assert str(caught.value) == message


def test_a_value_provided_as_a_type_has_to_be_of_it() -> None:
    with pytest.raises(CompositionError) as caught:
        provide(OtherCheck, as_=Port)
    assert str(caught.value) == "OtherCheck makes a OtherCheck, which has no send of Port"
    with pytest.raises(CompositionError, match="makes a Line, which is not a OtherCheck"):
        provide(unnamed, as_=OtherCheck)
    with pytest.raises(CompositionError, match="Line, which is not a Sequence"):
        provide(unnamed, as_=Sequence[int])
    with pytest.raises(CompositionError, match="supplied makes a str, which has no check"):
        supply("x", as_=Check)
    with pytest.raises(CompositionError, match="later is a coroutine function"):
        provide(later)
    with pytest.raises(CompositionError, match="no return annotation"):
        provide(lambda: None)


def test_the_tree_and_the_graph_show_groups_and_optional_needs() -> None:
    cells = (
        LINE,
        part("c", provides=(Choosy,)),
        part("d", invokes=(Runner,)),
        part("e", contributes=(two_checks,)),
    )
    found = views(cells, load(cells))
    lines = tree(found).splitlines()
    assert "    needs Port (line, optional)" in lines
    assert "    collects Check" in lines
    assert "    contributes Check" in lines
    assert '    "e" -> "d" [label="Check", style=dashed];' in dot(found).splitlines()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Line, "Line"),
        (None, "None"),
        (int | None, "int | NoneType"),
        (Sequence[Line], "Sequence[Line]"),
        (Group[Check], "Group[Check]"),
        (tuple[Line, ...], "tuple[Line]"),
        (Mapping[str, Line | Check], "Mapping[str, Line | Check]"),
        (Callable[[Line, int], str], "Callable[[Line, int], str]"),
    ],
)
def test_a_type_is_spelled_as_its_annotation_without_modules(kind: object, name: str) -> None:
    assert type_name(kind) == name


def test_the_graph_has_an_arrow_for_each_need_and_each_receiver_and_no_other() -> None:
    cells = (
        LINE,
        part("c", provides=(Choosy,)),
        part("d", invokes=(Runner,), contributes=(two_checks,)),
        part("e", contributes=(two_checks,)),
        Cell(name="off", description="Disabled."),
    )
    found = views(cells, load(cells, flags={"disable_cell": ["off"]}))
    lines = [line.strip() for line in dot(found).splitlines()]
    assert lines[0] == "digraph cells {"
    assert lines[-1] == "}"
    assert [line for line in lines if " -> " in line] == [
        '"c" -> "line" [label="Port"];',
        '"e" -> "d" [label="Check", style=dashed];',
    ]
    (off,) = [line for line in lines if line.startswith('"off"')]
    assert off == '"off" [tooltip="Disabled.", style=dashed, fontcolor=gray];'


def test_the_tree_has_the_state_of_each_cell_and_its_parts() -> None:
    cells = (LINE, Cell(name="off", description="Disabled."))
    tree_of = HealthTree(clock=lambda: 1000.0)
    tree_of.scope("line").degraded("no carrier")
    tree_of.scope("line").scope("part").scope("of").ok("well")
    health = {"line": list(tree_of.report())}
    settings = load(cells, flags={"disable_cell": ["off"]})
    found = views(cells, settings, health)
    lines = tree(found).splitlines()
    since = "since 1970-01-01T00:16:40Z"
    assert lines[0] == f"line: degraded: no carrier ({since})"
    assert f"    - part/of: ok: well ({since})" in lines
    assert "    provides Port" in lines
    assert f"off: disabled ({settings.reasons['off']})" in lines
    assert [line for line in lines if line.startswith("off:")] == [lines[-2]]
    running = running_views(cells, settings, health)
    assert [view.name for view in running] == ["line", "off"]
    assert [view.enabled for view in running] == [True, False]
    assert running[1] == CellView(
        name="off", description="Disabled.", enabled=False, reason=settings.reasons["off"]
    )
    assert with_wiring(running, found) == found
