"""Members of answers: names that are no plain camel case, and values of absent members."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cells.api import history, model
from cells.api.model.envelope import Item
from cells.api.model.objects import ConditionItem, ProblemItem, problem_text

NAMES = {
    "BfdItem": {"minimumTTL"},
    "HostInstanceItem": {"localASN", "routerID"},
    "RouteItem": {"pathID"},
    "SpanItem": {"traceID", "spanID", "parentSpanID"},
    "SupportItem": {"tcpMD5"},
}
DEFAULTS: dict[str, dict[str, object]] = {
    "BfdItem": {"multihop": False, "strict": False, "passive": False, "ups": 0},
    "DriftItem": {"missing": 0, "unexpected": 0, "different": 0},
    "EventItem": {"count": 1},
    "HistoryItem": {"node": "", "sequence": 0, "name": "", "changes": (), "causes": (), "count": 1},
    "MetricItem": {"description": ""},
    "ProblemItem": {"count": 1, "of_tenant": False},
    "StatusItem": {"prefix_tables": ""},
}


def items() -> Iterator[type[Item]]:
    """Yield the items of all answers."""
    for module in (model, history):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Item) and value is not Item:
                yield value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def test_members_are_in_camel_case_and_abbreviations_in_capitals() -> None:
    found = {
        item.__name__: {
            field.encode_name
            for field in msgspec.structs.fields(item)
            if field.encode_name != camel(field.name)
        }
        for item in items()
    }
    assert len(found) > 25
    assert {name: names for name, names in found.items() if names} == NAMES


def test_a_member_that_is_absent_is_empty_or_false_and_an_object_is_there_once() -> None:
    found = {
        item.__name__: {
            field.name: field.default
            for field in msgspec.structs.fields(item)
            if field.default not in (msgspec.NODEFAULT, None)
        }
        for item in items()
    }
    assert {name: values for name, values in found.items() if values} == DEFAULTS


def test_members_without_a_value_are_absent() -> None:
    item = ConditionItem(kind="Service", name="web", type="Ready", status="True", reason="Up")
    assert msgspec.to_builtins(item) == {
        "kind": "Service",
        "name": "web",
        "type": "Ready",
        "status": "True",
        "reason": "Up",
    }


def test_a_problem_in_text_has_its_first_object_and_its_field() -> None:
    item = ProblemItem(objects=["Router/a", "Router/b"], field="spec.asn", message="differs")
    assert problem_text(msgspec.to_builtins(item)) == "Router/a: spec.asn: differs"
    nowhere = ProblemItem(objects=[], field="", message="differs")
    found = {"objects": [], "field": "", **msgspec.to_builtins(nowhere)}
    assert problem_text(found) == "differs"
