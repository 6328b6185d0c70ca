"""Small changes of a module's text, each of which its tests should notice: one operand, one argument.

What no test can see stays as it is:

* annotations, type variables, the types of casts, imports, ``__all__``: they are for type checkers;
* ``frozen``, ``slots`` and ``kw_only`` of a class, which only forbid what type checkers reject as well,
  and ``strict`` of `zip`, which only asserts;
* docstrings, texts with spaces and formatted texts (messages, help): their words are free, and tests
  that quote them see more than that there is one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeGuard

_COMPARED: Final = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_COMPUTED: Final = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
_TYPES: Final = frozenset({"TypeVar", "ParamSpec", "NewType"})
"""Functions for type checkers alone."""
_FORBIDDING: Final = frozenset({"frozen", "slots", "kw_only"})
"""Arguments of a class that change nothing of a program that type checkers accept."""


class Change(NamedTuple):
    """The octets ``start`` to ``end`` of a module's UTF-8 text, and what replaces them."""

    line: int
    last_line: int
    start: int
    end: int
    replaced_by: bytes

    def apply(self, source: bytes) -> bytes:
        """Return the changed text."""
        return source[: self.start] + self.replaced_by + source[self.end :]

    def is_valid(self, source: bytes) -> bool:
        """True if the changed text is Python: an operator of several lines may leave half a line."""
        try:
            ast.parse(self.apply(source))
        except SyntaxError:
            return False
        return True

    def describe(self, source: bytes) -> str:
        """Return the change as one line: ``old -> new``."""
        old = " ".join(source[self.start : self.end].decode().split())
        new = " ".join(self.replaced_by.decode().split())
        return f"{old or '(nothing)'} -> {new or '(nothing)'}"


def changes(source: bytes) -> list[Change]:
    """Return the changes of a module, in the order of its text; a few of them are not Python."""
    return sorted(set(_Finder(source).found()))


class _Finder:
    """The changes of one module."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def found(self) -> Iterator[Change]:
        for node in _executed(ast.parse(self._source)):
            if isinstance(node, ast.expr):
                yield from self._of_expression(node)
            else:
                yield from self._of_statement(node)

    def _of_expression(self, node: ast.expr) -> Iterator[Change]:
        match node:
            case ast.Compare(ops=[op]):
                between = self._end(node.left), self._start(node.comparators[0])
                yield from self._operator(node, between, _COMPARED[type(op)])
            case ast.BoolOp():
                first, second = node.values[:2]
                words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                yield from self._operator(node, (self._end(first), self._start(second)), words)
            case ast.BinOp() if type(node.op) in _COMPUTED:
                between = self._end(node.left), self._start(node.right)
                yield from self._operator(node, between, _COMPUTED[type(node.op)])
            case ast.UnaryOp(op=ast.Not()):
                yield self._change(node, self._start(node), self._start(node.operand), b"")
            case ast.Constant():
                yield from self._constant(node)
            case ast.Call():
                yield from self._arguments(node)
            case ast.IfExp():
                yield self._negated(node.test)

    def _of_statement(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.If() | ast.While():
                yield self._negated(node.test)
            case ast.comprehension():
                for condition in node.ifs:
                    yield self._replaced(condition, b"True")
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield self._replaced(value, b"None")
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield self._replaced(node, b"pass")
            case ast.Break():
                yield self._replaced(node, b"continue")
            case ast.Continue():
                yield self._replaced(node, b"break")

    def _operator(
        self, node: ast.expr, between: tuple[int, int], words: tuple[str, str]
    ) -> Iterator[Change]:
        """Replace the operator, which stands between the two operands."""
        start, end = between
        old, new = words
        pattern = r"\s+".join(map(re.escape, old.split()))
        if found := re.search(pattern.encode(), self._source[start:end]):
            yield self._change(node, start + found.start(), start + found.end(), new.encode())

    def _constant(self, node: ast.Constant) -> Iterator[Change]:
        match node.value:
            case bool():
                yield self._replaced(node, str(not node.value).encode())
            case int() | float():
                yield self._replaced(node, repr(node.value + 1).encode())
            case str() if node.value and not _is_message(node.value):
                text = self._source[self._start(node) : self._end(node)]
                if text[:1] in b"\"'":
                    yield self._replaced(node, repr(node.value + "_").encode())

    def _arguments(self, node: ast.Call) -> Iterator[Change]:
        everything: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        everything.sort(key=self._start)
        for i, argument in enumerate(everything):
            if _is_for_checkers(node, argument):
                continue
            if isinstance(argument, ast.keyword) and argument.arg is not None:
                # Without the argument, and with the comma before or after it.
                start = self._end(everything[i - 1]) if i else self._start(argument)
                last = i + 1 == len(everything)
                end = self._end(argument) if i or last else self._start(everything[i + 1])
                yield self._change(argument, start, end, b"")
            elif _is_replaceable(argument):
                yield self._replaced(argument, b"None")

    def _negated(self, test: ast.expr) -> Change:
        return self._replaced(
            test, b"not (" + self._source[self._start(test) : self._end(test)] + b")"
        )

    def _replaced(self, node: ast.expr | ast.stmt, text: bytes) -> Change:
        return self._change(node, self._start(node), self._end(node), text)

    def _change(
        self, node: ast.expr | ast.stmt | ast.keyword, start: int, end: int, text: bytes
    ) -> Change:
        return Change(node.lineno, node.end_lineno or node.lineno, start, end, text)

    def _start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset


def _is_for_checkers(parent: ast.AST, child: ast.AST) -> bool:
    """True for the type of a cast, and for what only forbids or asserts."""
    called = ast.unparse(parent.func) if isinstance(parent, ast.Call) else ""
    if isinstance(child, ast.keyword):
        return child.arg in _FORBIDDING or (called, child.arg) == ("zip", "strict")
    return called == "cast" and isinstance(parent, ast.Call) and child is parent.args[0]


def _is_replaceable(node: ast.expr | ast.keyword) -> TypeGuard[ast.expr]:
    if not isinstance(node, ast.expr) or isinstance(node, ast.Starred | ast.JoinedStr):
        return False
    if not isinstance(node, ast.Constant):
        return True
    return node.value is not None and not _is_message(node.value)


def _is_message(value: object) -> bool:
    return isinstance(value, str) and " " in value


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run: no annotations, type variables, docstrings, imports, parts of texts."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        children: Iterable[object] = value if isinstance(value, list) else [value]
        for child in children:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.Import | ast.ImportFrom):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            if isinstance(child, ast.Call) and ast.unparse(child.func) in _TYPES:
                continue
            if _is_for_checkers(node, child):
                continue
            yield from _executed(child)
