r"""Templates of ``-o jsonpath=``, in kubectl's dialect: text, with expressions in braces.

``{range .items[*]}{.name}{"\t"}{.state}{"\n"}{end}``. The expressions: ``.name``, ``['name']``,
``[0]``, ``[-1:]``, ``[*]``, ``..name``, ``['a', 'b']``, ``[?(@.state=="Established")]``, ``@`` and
``$``; ``{range}`` to ``{end}``, and text in quotes with the escapes of JSON. A template without braces
is one expression. What does not exist is no text, as in kubectl; the results of one expression have
a space between them, and values that are no text are JSON
(https://kubernetes.io/docs/reference/kubectl/jsonpath/).
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

Step: TypeAlias = Callable[[Any, Any], Iterator[Any]]
"""From a value, and the whole document, to the values that it selects."""
Path: TypeAlias = tuple[bool, tuple[Step, ...]]
"""Whether it begins at the document, and not at the present value; its steps."""

_FIELD: Final = re.compile(r"(?:\\.|[^\s.\[\]{}()=!<>'\",\\@$])+")
_QUOTED: Final = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_COMPARISON: Final = re.compile(r"==|!=|<=|>=|<|>")
_ELEMENT: Final = re.compile(
    r"\s*(?:'(?P<key>(?:\\.|[^'\\])*)'|(?P<slice>(?:-?\d+)?(?::(?:-?\d+)?){0,2}))\s*", re.ASCII
)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


MAX_NESTED: Final = 50
"""Ranges and filters of a template, which may be within each other."""
MAX_DESCENTS: Final = 3
"""``..`` in an expression: each multiplies the results by the depth of the document."""


class InvalidTemplate(Exception):  # noqa: N818  a value that is wrong, as InvalidOption
    """A template that cannot be parsed; ``str()`` is a sentence without its end."""


class Text(NamedTuple):
    """Text between expressions."""

    text: str


class Expression(NamedTuple):
    """An expression, whose results are printed."""

    path: Path


class Range(NamedTuple):
    """The text that is printed for each result of an expression."""

    path: Path
    body: tuple[Text | Expression | Range, ...]


Node: TypeAlias = Text | Expression | Range


class Template:
    """A parsed template. Raises `InvalidTemplate`."""

    def __init__(self, text: str) -> None:
        if not text:
            raise InvalidTemplate("the template is empty")
        if "{" not in text:
            text = "{" + (text if text[0] in ".[$@" else f".{text}") + "}"
        if text.count("?(") + text.count("{range") > MAX_NESTED:
            raise InvalidTemplate(f"more than {MAX_NESTED} ranges and filters")
        try:
            text.encode()
            self._nodes = _nodes(text)
        except UnicodeEncodeError:
            raise InvalidTemplate("the template is not UTF-8") from None
        except ValueError:  # of int(), as of an answer in JSON
            raise InvalidTemplate("a number has too many digits") from None

    def render(self, document: object, show: Callable[[str], str] = str) -> str:
        """Return the text of a document; ``show`` makes the texts in it safe to print."""
        return "".join(_render(self._nodes, document, document, show))


def _render(
    nodes: Iterable[Node], value: object, root: object, show: Callable[[str], str]
) -> Iterator[str]:
    for node in nodes:
        match node:
            case Text(text):
                yield text
            case Expression(path):
                yield " ".join(_shown(result, show) for result in _select(path, value, root))
            case Range(path, body):
                for result in _select(path, value, root):
                    yield from _render(body, result, root, show)


def _shown(value: object, show: Callable[[str], str]) -> str:
    if isinstance(value, str):
        return show(value)
    return show(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _select(path: Path, value: object, root: object) -> list[Any]:
    values = [root if path[0] else value]
    for step in path[1]:
        values = [result for each in values for result in step(each, root)]
    return values


# --------------------------------------------------------------------------- parsing


def _nodes(text: str) -> tuple[Node, ...]:
    """Parse the parts of a template."""
    open_ranges: list[tuple[Path, list[Node]]] = []
    nodes: list[Node] = []
    at = 0
    while at < len(text):
        start = text.find("{", at)
        if start != at:
            nodes.append(Text(text[at : start if start >= 0 else len(text)]))
        if start < 0:
            break
        end = _end_of_action(text, start + 1)
        action, at = text[start + 1 : end].strip(), end + 1
        if action == "end":
            if not open_ranges:
                raise InvalidTemplate("{end} without {range}")
            path, before = open_ranges.pop()
            before.append(Range(path, tuple(nodes)))
            nodes = before
        elif re.match(r"range\b", action):
            open_ranges.append((_path(action[len("range") :].strip()), nodes))
            nodes = []
        elif quoted := _QUOTED.fullmatch(action):
            nodes.append(Text(_unquoted(quoted[0])))
        else:
            nodes.append(Expression(_path(action)))
    if open_ranges:
        raise InvalidTemplate("{range} without {end}")
    return tuple(nodes)


def _end_of_action(text: str, at: int) -> int:
    """Return the place of the brace that closes an action."""
    while at < len(text) and text[at] != "}":
        quoted = _QUOTED.match(text, at)
        at = quoted.end() if quoted else at + 1
    if at >= len(text):
        raise InvalidTemplate("a { is not closed")
    return at


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    if text[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        unquoted = str(json.loads(f'"{inner}"', strict=False))
        unquoted.encode()
    except ValueError:
        raise InvalidTemplate(f"{text} is not a text: \\ has the escapes of JSON") from None
    return unquoted


def _path(text: str) -> Path:
    """Parse an expression."""
    path, end = _path_at(text, 0)
    if end != len(text) or not text:
        raise InvalidTemplate(f"{text or '{}'}: no expression, such as .items[*].name")
    return path


def _path_at(text: str, at: int) -> tuple[Path, int]:
    """Parse the expression that begins there; returns it and its end."""
    from_root = text[at : at + 1] == "$"
    if from_root or text[at : at + 1] == "@":
        at += 1
    steps: list[Step] = []
    while at < len(text):
        if text[at] == "[":
            step, at = _brackets(text, at + 1)
            steps.append(step)
            continue
        if text[at] != ".":
            break
        at += 1
        if text[at : at + 1] == ".":
            steps.append(_descend)
            at += 1
            if steps.count(_descend) > MAX_DESCENTS:
                raise InvalidTemplate(f"more than {MAX_DESCENTS} times .. in an expression")
        if text[at : at + 1] == "*":
            steps.append(_each)
            at += 1
        elif field := _FIELD.match(text, at):
            steps.append(_field(re.sub(r"\\(.)", r"\1", field[0])))
            at = field.end()
    return (from_root, tuple(steps)), at


def _brackets(text: str, at: int) -> tuple[Step, int]:
    """Parse what is between brackets; returns the step and the place behind it."""
    if text.startswith("?(", at):
        return _filter(text, at + 2)
    if text.startswith("*]", at):
        return _each, at + 2
    steps: list[Step] = []
    while element := _ELEMENT.match(text, at):
        after = text[element.end() : element.end() + 1]
        if after not in (",", "]") or not element[0].strip():
            break
        if element["key"] is not None:
            # As in kubectl the dots of a key divide it, unless they are escaped.
            names = re.findall(r"(?:\\.|[^.\\])+", element["key"])
            steps.append(_chain([_field(re.sub(r"\\(.)", r"\1", name)) for name in names]))
        else:
            steps.append(_slice(element["slice"]))
        at = element.end() + 1
        if after == "]":
            return _union(steps), at
    raise InvalidTemplate(f"[{text[at:]}: no index, slice, 'name', * or ?(filter) with a ]")


def _filter(text: str, at: int) -> tuple[Step, int]:
    left, at = _operand(text, at)
    sign = _COMPARISON.match(text, at)
    if sign is not None:
        right, at = _operand(text, sign.end())
        compare = _COMPARE[sign[0]]
    if not text.startswith(")]", at):
        raise InvalidTemplate(f'?({text[at:]}: no filter, such as ?(@.state=="Idle") with a ]')

    def step(value: Any, root: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
        for each in value if isinstance(value, list) else ():
            results = left(each, root)
            if bool(results) if sign is None else _holds(compare, results, right(each, root)):
                yield each

    return step, at + 2


def _holds(compare: Callable[[Any, Any], bool], left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Compare the only results of both sides; another type is not equal, and not less."""
    if len(left) != 1 or len(right) != 1:
        return False
    try:
        return compare(left[0], right[0])
    except TypeError:
        return False


def _operand(text: str, at: int) -> tuple[Callable[[Any, Any], list[Any]], int]:
    """Parse one side of a comparison."""
    at = _spaces(text, at)
    constant: Any
    if quoted := _QUOTED.match(text, at):
        constant, end = _unquoted(quoted[0]), quoted.end()
    elif number := _NUMBER.match(text, at):
        constant, end = json.loads(number[0]), number.end()
    elif word := re.compile(r"true|false").match(text, at):
        constant, end = word[0] == "true", word.end()
    else:
        path, end = _path_at(text, at)
        if end == at:
            raise InvalidTemplate(f"?({text[at:]}: no side of a comparison, such as @.state")
        return (lambda value, root: _select(path, value, root)), _spaces(text, end)
    return (lambda _value, _root: [constant]), _spaces(text, end)


def _spaces(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip())


# ----------------------------------------------------------------------------- steps


def _each(value: Any, _: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
    yield from (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )


def _descend(value: Any, root: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
    yield value
    for child in _each(value, root):
        yield from _descend(child, root)


def _field(name: str) -> Step:
    def step(value: Any, _: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _slice(text: str) -> Step:
    parts = [int(part) if part else None for part in text.split(":")]

    def step(value: Any, _: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
        if not isinstance(value, list):
            return
        if len(parts) > 1:
            yield from value[slice(*parts)]
        elif parts[0] is not None and -len(value) <= parts[0] < len(value):
            yield value[parts[0]]

    if len(parts) == 3 and parts[2] == 0:
        raise InvalidTemplate(f"[{text}]: a step of 0")
    return step


def _chain(steps: Sequence[Step]) -> Step:
    def step(value: Any, root: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
        yield from _select((False, tuple(steps)), value, root)

    return step


def _union(steps: Sequence[Step]) -> Step:
    def step(value: Any, root: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
        for each in steps:
            yield from each(value, root)

    return steps[0] if len(steps) == 1 else step
