"""The reason words of the code: what it passes as ``reason`` or ``code``.

These are the arguments of calls whose parameter, or field, has one of these names, by position or by
keyword; the first of a pair whose second part is a sentence; members of JSON and of literal types.
Names of constants are resolved, and so are the members of enumerations.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("cells", "cmd", "reconcilers", "speaker/api", "speaker/engine")
PARAMETERS: Final = frozenset({"reason", "code", "reason_word"})
WORD: Final = re.compile(r"(?:[A-Z][a-z0-9]*){1,}|ASLoop|NoVRF|NotAVRF")

_TYPES: Final = (
    *(ast.Assign, ast.AnnAssign, ast.Call, ast.Dict, ast.Tuple),
    *(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef),
)


def sources() -> Iterator[Path]:
    """Yield the files of the rooms."""
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Yield the modules of the rooms."""
    for path in sources():
        yield path, ast.parse(path.read_text())


def words(trees: Iterable[tuple[Path, ast.Module]]) -> dict[str, str]:
    """Return each word with a place of its use."""
    read = [(path, node) for path, tree in trees for node in _nodes(tree)]
    constants = _constants(node for _, node in read)
    positions = _positions(node for _, node in read)
    uses: dict[str, str] = {}
    for path, node in read:
        for value in (*_arguments(node, positions), *_pairs(node)):
            for word in _texts(value, constants):
                if WORD.fullmatch(word) and re.search("[a-z]", word):
                    uses.setdefault(word, f"{path.relative_to(ROOT)}:{value.lineno}")
    return uses


def _nodes(tree: ast.Module) -> list[ast.AST]:
    """Return the nodes of some types: one in six. `ast.walk` takes twice as long."""
    found: list[ast.AST] = []
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, _TYPES):
            found.append(node)
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, list):
                rest += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST):
                rest.append(value)
    return found


def _constants(nodes: Iterable[ast.AST]) -> dict[str, set[str]]:
    """Return the texts of constants of modules and of enumerations, by name."""
    texts: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if (
            isinstance(target, ast.Name)
            and target.id.strip("_").isupper()
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            texts[target.id].add(node.value.value)
    return texts


def _positions(nodes: Iterable[ast.AST]) -> dict[str, set[int]]:
    """Return the positions of such a parameter, by the name of a function or class."""
    places: dict[str, set[int]] = defaultdict(set)
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in node.args.args]
            names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        elif isinstance(node, ast.ClassDef):
            names = [
                part.target.id
                for part in node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
            names = names or [
                argument.arg
                for part in node.body
                if isinstance(part, ast.FunctionDef) and part.name == "__init__"
                for argument in part.args.args[1:]
            ]
        else:
            continue
        places[node.name] |= {at for at, name in enumerate(names) if name in PARAMETERS}
    return places


def _arguments(node: ast.AST, positions: dict[str, set[int]]) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            for at in positions.get(name, ()):
                yield from node.args[at : at + 1]
            for keyword in node.keywords:
                if keyword.arg in PARAMETERS:
                    yield keyword.value
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in PARAMETERS:
            yield value
        case ast.ClassDef(name=name) if name.endswith("Reason"):
            for part in node.body:
                if isinstance(part, ast.Assign):
                    yield part.value
        case _:
            pass


def _pairs(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the words of pairs of a word and a sentence, of members of JSON, and of literal types."""
    match node:
        case ast.Tuple(elts=[word, ast.Constant(value=str(sentence))]) if " " in sentence:
            yield word
        case ast.Tuple(elts=[ast.Constant() as word, ast.JoinedStr() | ast.Name()]):
            yield word
        case ast.Tuple(elts=[ast.Name(), ast.Constant(value=int()), ast.Constant() as word]):
            yield word  # an exception, its HTTP status and its code
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            for target, value in zip(targets, values, strict=False):
                if isinstance(target, ast.Name) and target.id in PARAMETERS:
                    yield value
        case ast.AnnAssign(target=ast.Name(id="_REASONS" | "_PARTS"), value=table):
            yield from (part for part in ast.walk(table or node) if isinstance(part, ast.Constant))
        case ast.Assign(targets=[ast.Name(id="_REASONS")], value=table):
            yield from (part for part in ast.walk(table) if isinstance(part, ast.Constant))
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value in PARAMETERS:
                    yield value
        case ast.Assign(
            targets=[ast.Name(id="Obstacle")], value=ast.Subscript(slice=ast.Tuple(elts=literals))
        ):
            yield from literals
        case _:
            pass


def _texts(value: ast.expr, constants: dict[str, set[str]]) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield from constants.get(name, ())
        case ast.IfExp(body=first, orelse=second):
            yield from _texts(first, constants)
            yield from _texts(second, constants)
        case _:
            pass
