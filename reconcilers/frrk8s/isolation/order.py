"""The order of isolation: which objects are accepted, and why the others are not in effect. Pure.

Objects are accepted from the oldest to the youngest. An object that is invalid or unresolved, or that
differs from an older one, has no effect as a whole.

A reference to a VRF is resolved where any object of the node has a router of it, also a younger one:
objects may import the VRFs of each other. What refers to an isolated object is isolated, too; what it
had displaced is tried again.

Objects of all dialects that feed this one are in the same order. What these know of them
beside units, such as other references and other conflicts, are `JointRelations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from reconcilers.dialect import FeedConflicts
from reconcilers.frrk8s.claims import (
    Claim,
    Subject,
    conflicts,
    own_problems,
    password_claims,
)
from reconcilers.frrk8s.field_values import shown_vrf, vrf_name
from reconcilers.frrk8s.isolation.isolated_objects import IsolatedObject, isolated_objects
from reconcilers.frrk8s.isolation.joint_relations import NO_RELATIONS, JointRelations
from reconcilers.frrk8s.isolation.references import (
    Providers,
    References,
)
from reconcilers.frrk8s.one_object import imported_elsewhere
from reconcilers.frrk8s.passwords import Resolve
from reconcilers.frrk8s.unit_parts import Compiled, Unit, VrfPrefixes
from reconcilers.model import ObjectRef, Problem
from reconcilers.sliced_work import Pieces, Slices

Compile: TypeAlias = Callable[[Unit, VrfPrefixes], Compiled]
"""Compiles a unit with the prefixes of the VRFs of others."""
Claims: TypeAlias = Sequence[tuple[Subject, Claim]]
PIECES_OF_OBJECT: Final = 3
"""Pieces of a slice that one step with an object is."""
MAX_LISTED: Final = 3
"""Objects of a VRF that a message names."""


class LeftOut(NamedTuple):
    """Why an object is not in effect, as far as its units are the reason."""

    problems: Sequence[Problem]
    cause: Literal["itself", "older", "later"]
    """Whether the object is wrong whatever the others are, differs from itself or from older objects
    that are accepted, or had to wait, and differs from younger ones."""


class Isolated(NamedTuple):
    """The accepted objects, and why the others are not in effect."""

    refs: frozenset[ObjectRef]
    """The accepted objects, also without units."""
    left_out: Mapping[ObjectRef, LeftOut]
    """Without barred objects."""


def isolated(
    units: Iterable[Unit],
    compile_unit: Compile,
    resolve: Resolve,
    relations: JointRelations = NO_RELATIONS,
    pieces: Pieces | None = None,
    node: str = "",
    barred: AbstractSet[ObjectRef] = frozenset(),
) -> Slices[Isolated]:
    """Isolate units in their order: from the oldest object to the youngest, its units together.

    Problems name ``node`` (`own_problems`). ``barred`` objects are not accepted.
    """
    isolation = _Isolation(
        units, compile_unit, resolve, relations, pieces or Pieces(), node, barred
    )
    yield from isolation.check()
    return (yield from isolation.result())


class _Agreeing(NamedTuple):
    """Objects that agree, the oldest first, and the others with which each of them disagrees."""

    objects: dict[ObjectRef, IsolatedObject]
    beside: FeedConflicts
    values: Mapping[Subject, Any]
    rejected: Sequence[IsolatedObject]


class _Isolation:
    def __init__(
        self,
        units: Iterable[Unit],
        compile_unit: Compile,
        resolve: Resolve,
        relations: JointRelations,
        pieces: Pieces,
        node: str,
        barred: AbstractSet[ObjectRef],
    ) -> None:
        self._node = node
        self._barred = barred
        self._compile = compile_unit
        self._pieces = pieces
        self._resolve = resolve
        self._relations = relations
        self._objects = isolated_objects(units, relations)
        self._wrong: dict[ObjectRef, list[Problem]] = {ref: [] for ref in relations.wrong | barred}
        """The problems of objects that are not in effect whatever the others are."""
        self._claims: dict[ObjectRef, Claims] = {}

    def check(self) -> Slices[None]:
        """Compile each object alone."""
        everything = Providers(self._objects)
        for member in self._objects:
            if self._pieces.fill_slice(PIECES_OF_OBJECT):
                yield
            if member.ref in self._wrong:
                continue
            given = self._compiled(member, everything)
            wrong = [
                p
                for unit, present in given
                for p in own_problems(unit, present, self._resolve, self._node)
            ]
            if wrong:
                self._wrong[member.ref] = wrong
            else:
                self._claims[member.ref] = [pair for each in given for pair in self._of_unit(*each)]

    def _of_unit(self, unit: Unit, compiled: Compiled) -> Iterator[tuple[Subject, Claim]]:
        """Iterate over the claims of a unit."""
        yield from compiled.claims
        yield from password_claims(unit, compiled, self._resolve)

    def result(self) -> Slices[Isolated]:
        """Accept objects until none of the others agrees with the accepted objects."""
        accepted: dict[ObjectRef, IsolatedObject] = {}
        values: dict[Subject, Any] = {}
        waiting = [member for member in self._objects if member.ref not in self._wrong]
        while together := (yield from self._together(waiting, accepted)):
            accepted |= together
            for ref in together:
                values.update((subject, claim.value) for subject, claim in self._claims[ref])
            rest = [member for member in waiting if member.ref not in accepted]
            beside = yield from self._beside(accepted, ())
            waiting = []
            for member in rest:
                if not self._contradicts(member, values, beside):
                    waiting.append(member)
                if self._pieces.fill_slice(PIECES_OF_OBJECT):
                    yield
        return (yield from self._result_of(accepted.keys()))

    def _result_of(self, accepted: AbstractSet[ObjectRef]) -> Slices[Isolated]:
        """Return the result where these are accepted."""
        table: dict[Subject, list[Claim]] = {}
        for member in self._objects:
            if member.ref in accepted:
                for subject, claim in self._claims[member.ref]:
                    table.setdefault(subject, []).append(claim)
        left_out = {member.ref: member for member in self._objects if member.ref not in accepted}
        reasons: dict[ObjectRef, LeftOut] = {}
        for ref, member in left_out.items():
            if ref in self._barred:
                continue
            reasons[ref] = self._reasons(member, table, left_out)
            if self._pieces.fill_slice(PIECES_OF_OBJECT):
                yield
        refs = frozenset(member.ref for member in self._objects if member.ref in accepted)
        return Isolated(refs, reasons)

    def _beside(
        self, accepted: Iterable[ObjectRef], present: Iterable[IsolatedObject]
    ) -> Slices[FeedConflicts]:
        """Return the accepted objects of feeding dialects."""
        refs = list(accepted)
        beside = self._relations.beside({*refs, *(member.ref for member in present)})
        for ref in refs:
            beside.accept(ref)
            if self._pieces.fill_slice():
                yield
        return beside

    def _together(
        self, waiting: Iterable[IsolatedObject], accepted: Mapping[ObjectRef, IsolatedObject]
    ) -> Slices[dict[ObjectRef, IsolatedObject]]:
        """Return the objects that agree with each other and with the accepted objects."""
        present = {member.ref: member for member in waiting}
        while True:
            references = References(present, accepted.values(), self._is_resolved)
            while unresolved := references.unresolved():
                references.remove(unresolved)
            agreeing = yield from self._agreeing(present.values(), accepted)
            blocking = self._drop_unresolved(agreeing, accepted)
            if blocking is None:
                return agreeing.objects
            del present[blocking]

    def _agreeing(
        self, objects: Iterable[IsolatedObject], accepted: Mapping[ObjectRef, IsolatedObject]
    ) -> Slices[_Agreeing]:
        """Return the objects that differ from no earlier one."""
        given = list(objects)
        agreeing = yield from self._agreeing_in(given, given, accepted)
        if self._relations.ages and agreeing.rejected:
            # Rejected objects are no part of the environment of the others.
            agreeing = yield from self._agreeing_in(given, agreeing.objects.values(), accepted)
        return agreeing

    def _agreeing_in(
        self,
        objects: Iterable[IsolatedObject],
        environment: Iterable[IsolatedObject],
        accepted: Mapping[ObjectRef, IsolatedObject],
    ) -> Slices[_Agreeing]:
        beside = yield from self._beside(accepted, environment)
        values: dict[Subject, Any] = {}
        agreed: dict[ObjectRef, IsolatedObject] = {}
        rejected: list[IsolatedObject] = []
        for member in objects:
            if self._pieces.fill_slice(PIECES_OF_OBJECT):
                yield
            if self._contradicts(member, values, beside):
                rejected.append(member)
                continue
            agreed[member.ref] = member
            beside.accept(member.ref)
            values.update((subject, claim.value) for subject, claim in self._claims[member.ref])
        return _Agreeing(agreed, beside, values, rejected)

    def _contradicts(
        self, member: IsolatedObject, values: Mapping[Subject, Any], beside: FeedConflicts
    ) -> bool:
        if _contradicts(self._claims[member.ref], values):
            return True
        return next(beside.against(member.ref), None) is not None

    def _drop_unresolved(
        self, agreeing: _Agreeing, accepted: Mapping[ObjectRef, IsolatedObject]
    ) -> ObjectRef | None:
        """Remove the agreeing objects whose references are to objects that are not among them.

        One in whose place others were rejected is not removed: the youngest of these is returned, for
        a trial without it.
        """
        references = References(agreeing.objects, accepted.values(), self._is_resolved)
        unresolved = references.unresolved()
        if not unresolved:
            return None
        displacing = self._displacing(agreeing)
        blocking: list[IsolatedObject] = []
        while unresolved:
            blocking += [member for member in unresolved if member.ref in displacing]
            references.remove(member for member in unresolved if member.ref not in displacing)
            unresolved = references.unresolved()
        return max(blocking, key=lambda member: member.age).ref if blocking else None

    def _displacing(self, agreeing: _Agreeing) -> set[ObjectRef]:
        """Return the agreeing objects with which rejected ones disagree."""
        disputed: set[Subject] = set()
        displacing: set[ObjectRef] = set()
        for rejected in agreeing.rejected:
            claims = self._claims[rejected.ref]
            if _contradicts(claims, {}):
                continue  # It is not in effect whatever the others are.
            displacing.update(agreeing.beside.against(rejected.ref))
            disputed.update(
                subject
                for subject, claim in claims
                if agreeing.values.get(subject, claim.value) != claim.value
            )
        displacing.update(
            ref
            for ref in agreeing.objects
            if any(subject in disputed for subject, _ in self._claims[ref])
        )
        return displacing

    def _is_resolved(self, member: IsolatedObject, providers: Providers) -> bool:
        if not providers.has(member.references):
            return False
        if not member.imported:
            return True
        return not any(
            compiled.errors or compiled.missing for _, compiled in self._compiled(member, providers)
        )

    def _compiled(
        self, member: IsolatedObject, providers: Providers
    ) -> list[tuple[Unit, Compiled]]:
        elsewhere = providers.prefixes(member)
        return [(unit, self._compile(unit, elsewhere)) for unit in member.units]

    # Problems

    def _reasons(
        self,
        member: IsolatedObject,
        table: Mapping[Subject, Sequence[Claim]],
        left_out: Mapping[ObjectRef, IsolatedObject],
    ) -> LeftOut:
        """Return why an object is not in effect."""
        wrong = self._wrong.get(member.ref)
        if wrong is not None:
            return LeftOut(wrong, "itself")
        with_older, with_all = _disagreements(self._claims[member.ref], table)
        if with_older:
            return LeftOut(with_older, "older")
        # An object that differs from younger ones alone had to wait for a VRF.
        vrfs = _left_out_vrfs(member, left_out, self._node)
        return LeftOut([*vrfs, *with_all], "later")


def _contradicts(claims: Claims, accepted: Mapping[Subject, Any]) -> bool:
    """True if claims differ from each other, or from the accepted values."""
    own: dict[Subject, Any] = {}
    for subject, claim in claims:
        if own.setdefault(subject, claim.value) != claim.value:
            return True
        if subject in accepted and accepted[subject] != claim.value:
            return True
    return False


def _disagreements(
    claims: Claims, table: Mapping[Subject, Sequence[Claim]]
) -> tuple[list[Problem], list[Problem]]:
    """Return the conflicts of an object with itself and older accepted ones, and with all."""
    own: dict[Subject, list[Claim]] = {}
    for subject, claim in claims:
        own.setdefault(subject, []).append(claim)
    with_older: list[tuple[Subject, list[Claim]]] = []
    with_all: list[tuple[Subject, list[Claim]]] = []
    for subject, of_object in own.items():
        first = of_object[0]
        others = [claim for claim in table.get(subject, ()) if claim.value != first.value]
        older = [claim for claim in others if claim.unit.age < first.unit.age]
        with_older.append((subject, [*of_object, *older]))
        with_all.append((subject, [*of_object, *others]))
    return conflicts(with_older), conflicts(with_all)


def _left_out_vrfs(
    member: IsolatedObject, left_out: Mapping[ObjectRef, IsolatedObject], node: str
) -> Iterator[Problem]:
    """Yield a problem for each import from an object that is not in effect."""
    on_node = f" on node {node}" if node else ""
    for unit in member.units:
        elsewhere = imported_elsewhere(unit)
        for i, router in enumerate(unit.row.spec.bgp.routers):
            for j, imported in enumerate(router.imports):
                vrf = vrf_name(imported.vrf)
                refs = [str(ref) for ref, other in left_out.items() if vrf in other.routed]
                if vrf not in elsewhere or not refs:
                    continue
                named = ", ".join(refs[:MAX_LISTED]) + (", ..." if len(refs) > MAX_LISTED else "")
                text = f"VRF {shown_vrf(vrf)}: its router in {named} is not in effect{on_node}"
                path = unit.path(f"spec.bgp.routers[{i}].imports[{j}].vrf")
                yield Problem((unit.ref,), path, text, category="unresolved")
