"""The words of the code and its pages: phrases that do not come back, variables that hold something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
ROOMS: Final = ("cells", "cmd", "reconcilers", "resources", "speaker", "statedb")
TEXTS: Final = (
    *(
        path
        for room in (*ROOMS, "bench", "deploy", "tests")
        for path in sorted((ROOT / room).rglob("*.*"))
        if path.suffix in {".py", ".c", ".h"} and path != Path(__file__)
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    ROOT / "deploy/helm/waggle/README.md",
    *(
        path
        for room in (*ROOMS, "deploy", "examples")
        for path in sorted((ROOT / room).rglob("*.*"))
        if path.suffix in {".css", ".html", ".js", ".tpl", ".yaml"}
    ),
)

PHRASES: Final[Mapping[str, str]] = {
    r"\bis there (twice|\S+ times)\b": "is defined, listed or used twice; a duplicate",
    r"\b(that|which|it|they|alone|still) counts?(?! (no|the) )\b": "is in effect, is used, is accepted",
    r"\b(counts?|counting) as\b": "is, is taken as",
    r"\b[Aa]nother ones?\b": "another session, another dialect ...",
    r"\b(that|which|what|it|they|this) (is|are) none\b(?! of )": "an invalid prefix, an invalid limit",
    r"\b[Nn]one that\b": "the noun: no address that, not filled",
    r"\b[Ww]hatever (those|these|they) (is|are)\b": "all; the noun",
    r"\b[Ww]hat (it|they) stands? for\b": "its anchor, its value",
    r"(?:[.:;|#] |\"\"\")[Ww]ho (?:is|are|has|may|can|must|will|\w+s)\b": "users who may, the owner",
    r"\b(every|each|no) other one\b": "no other Service, no other row ...",
    r"\bother ones\b": "others; new ones; the noun",
    r"\bany other one\b": "any other number, field, test ...",
    r"\bthe one before\b": "the last one; its predecessor; the former version",
    r"\bthe ones (that|which|of)\b": "the noun",
    r"\b[Ww]hoever\b|\b[Nn]obody\b|\b[Ss]omebody\b": "the peer, the operator, the reader ...",
    r'"""(Those|The ones?) (that|which|of|whose|among|in|with|without|beside)\b': "the noun",
    r"\btwo looks\b": "poll interval; two readings",
    r"\bdoes without\b": "what is not configured",
    r"\b([Ll]eft|[Ll]eav(e|es|ing)) out\b": "is not in effect, not configured, not advertised, omitted",
    r"\b[Tt]hose (of|that|which|whose|with|without|in|from|before)\b": "the noun",
    r"\b[Oo]nes? (that|whose)\b": "the noun",
    r"\b(objects?|it|file|entry|written|fails?|duplicate) do(es)? not count\b": "is ignored",
    r"\b(entry|step|written|version|preference|prefix|one|file) counts(?!\.)\b": "is used",
    r"\btells? (\S+ ){1,5}apart\b": "distinguishes",
    r"\b[Ww]hat (comes?|came|becomes?|became) of\b": "the outcome; the noun",
    r"\bwhat is to be\b": "the routes to withdraw, the objects to write",
    r'"""Ha(s|ve) (no|the) (\S+ ){1,3}(use|written|scanned|read)\b': "the verb",
    r"\bsays? (why|where|which|so|that)\b": "has the reason, the place; reports",
    r"\b(ask|asks) (the|no|each) agents?\b": "read from",
    r"\bask again\b": "repeat the command",
    r"\b[Ff]ed (objects?|configurations?|rows?|to \S+ merge)\b|\band fed\b": "translated",
    r"\btaken (objects?|units?|pools?|ones)\b|\b(objects?|units?) that are taken\b": "accepted",
    r"\b(may|can|must) stand (beneath|beside|behind|between|where)\b": "is allowed there",
    r"\b(is|are) not made (narrower|wider|smaller|larger|shorter|longer)\b": "minimum, maximum",
    r"\b[Ww]hat (\S+ ){1,4}(do|does|can|cannot) not hold\b": "values over 32 bits",
    r'"""Rejects? what\b': "reject values, addresses ... that",
    r"\b(objects?|files?|number|rest|version|readings|row) counts?\b(?!\s[\dbfo])": "is in effect",
    r"(\w,|\bannouncement|\bclient) counts\.\W": "is in effect, is used, takes precedence",
    r"nodes?_to_come|\bto_come\b|\b_?ToCome\b": "hypothetical nodes",
    r"\b(are|is) to each other\b|\bwrong alone\b": "conflicts between; invalid",
    r"\b(that|which) (they|it) comes? to\b": "the resulting rules, document ...",
    r"\bthat (it|they) stands? for\b|\bhave one together\b": "share this row; replaces",
    r"\bcomputed of\b": "computed from",
    r"\b(what|that) (it|they) (is|are) made of\b": "parts, inputs, sources",
    r"\b(is|are) (said|told)\b": "is reported, is distinguished",
}
"""Phrases of no native reader, each with what the field writes."""

EXEMPT: Final = {
    "CHANGELOG.md": "(was: is ",
    "cells/sources/unused_objects.py": "counts",
    "docs/cli.md": "AS numbers and counts",
    "reconcilers/antrea/node_facts.py": "as Antrea does without IPv4",
}
"""Texts with a phrase in its plain meaning, or quoted: a part of its lines."""

NOT_IN_NAMES: Final = {
    # `leftOut` is a field of the local API's FamilyCount, and `LeftOut` a reason of conditions.
    r"\b([Ll]eft|[Ll]eav(e|es|ing)) out\b",
    # Names have count as a noun: UnusedObjectsCount.
    r"\b(objects?|files?|number|rest|version|readings|row) counts?\b(?!\s[\dbfo])",
}
"""Phrases that are a term or a noun where they stand in a name."""

LINE_BREAK: Final = r"(?:[ ]+|[ ]*\"?\n\s*(?:#|\*|//)?[ ]*f?\"?)"
"""A space of a phrase, or where it is wrapped: in a comment, a docstring, a text in parts."""


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_does_not_come_back(phrase: str) -> None:
    pattern = re.compile(phrase.replace(" ", LINE_BREAK))
    places = [
        f"{path.relative_to(ROOT)}:{number}: {lines.strip()[:100]}  -> {PHRASES[phrase]}"
        for path, text in _texts()
        for number, lines in _matches(pattern, text)
        if EXEMPT.get(str(path.relative_to(ROOT)), "\0") not in lines
    ]
    assert places == []


@cache
def _texts() -> tuple[tuple[Path, str], ...]:
    """Return the files and their texts, read once for all phrases."""
    return tuple((path, path.read_text()) for path in TEXTS)


@pytest.mark.parametrize("phrase", sorted(PHRASES.keys() - NOT_IN_NAMES))
def test_a_phrase_is_in_no_name(phrase: str) -> None:
    pattern = re.compile(phrase)
    places = [
        f"{place}: {name}  -> {PHRASES[phrase]}"
        for place, name in _names()
        if pattern.search(_words(name))
    ]
    assert places == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test_a_failure_is_another_one", "test a failure is another one"),
        ("_ToCome", "to come"),
        ("BGPPeerNobody", "bgp peer nobody"),
        ("NoBody", "no body"),
    ],
)
def test_a_name_is_read_as_words(name: str, words: str) -> None:
    assert _words(name) == words


def _words(name: str) -> str:
    """Return a name as text: ``_`` and the capitals of a class separate its words."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return parts.replace("_", " ").strip().lower()


@cache
def _names() -> tuple[tuple[str, str], ...]:
    """Return the places and names of all functions, methods and classes."""
    return tuple(
        (f"{path.relative_to(ROOT)}:{node.lineno}", node.name)
        for path, text in _texts()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )


@pytest.mark.parametrize(
    "text",
    [
        "    # The table without those of\n    # the peer.",
        '        "objects are left "\n        "out",',
        '        f"of {those} or one "\n        f"that is new",',
        "/* all of those\n * that wait */",
        '"""A text that may stand beneath its row is not made narrower."""',
        '"""Reject what four octets do not hold."""',
        "the rest of the object counts",
        "if no complete version of the file, counts.\n",
        "def nodes_to_come(selectors):",
        "class _ToCome(NamedTuple):",
        "What objects are to each other.",
        "which of them are in effect, and the rules that they come to",
        "problems that it stands for",
        "written again when what they are made of differs",
        "the session is exchanged for another\n    # one",
        "Raise ValueError for a prefix that is none.",
        "# or look at what comes of them with",
        "the page. Who may write them decides",
    ],
)
def test_a_wrapped_phrase_is_found(text: str) -> None:
    patterns = [re.compile(phrase.replace(" ", LINE_BREAK)) for phrase in PHRASES]
    assert any(list(_matches(pattern, text)) for pattern in patterns)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield the matches: the number of the first line, and the whole lines."""
    # A search for letters alone is several times as fast, and finds the pattern's matches as well.
    if _without_boundaries(pattern).search(text) is None:
        return
    for match in pattern.finditer(text):
        start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        yield text.count("\n", 0, start) + 1, text[start : end if end >= 0 else len(text)]


@cache
def _without_boundaries(pattern: re.Pattern[str]) -> re.Pattern[str]:
    # Within a negative look-ahead a boundary less would be a match less.
    assert not re.search(r"\(\?![^)]*\\b", pattern.pattern)
    return re.compile(pattern.pattern.replace(r"\b", ""), pattern.flags)


def test_a_docstring_has_a_noun_or_a_verb_of_its_own_at_its_beginning() -> None:
    """Of modules, classes, functions, fields and constants."""
    pronoun = re.compile(
        r'^[ ]*r?"""(What|Who|Whose|Which|Where|The ones?|Those|One that)\b', re.MULTILINE
    )
    places = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in _texts()
        if path.relative_to(ROOT).parts[0] in ROOMS and path.suffix == ".py"
        for number, line in _matches(pronoun, text)
    ]
    assert places == []


def test_a_variable_says_what_it_holds() -> None:
    """Tests are not searched: the assertion beside a variable shows what it holds."""
    places = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for room in (*ROOMS, "bench", "deploy")
        for path in sorted((ROOT / room).rglob("*.py"))
        for tree in [ast.parse(path.read_text())]
        for name, line in _bindings(tree, frozenset({"found", "one"}))
    ]
    assert places == []


def _bindings(tree: ast.AST, names: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines that bind one of the names; ``one`` beside ``other`` is a pair of equals."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=bound, ctx=ast.Store()) if bound in names:
                yield bound, node.lineno
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) if bound in names:
                yield bound, node.lineno
            case ast.MatchAs(name=str(bound)) | ast.MatchStar(name=str(bound)) if bound in names:
                yield bound, node.lineno
            case ast.arguments():
                arguments = {each.arg: each.lineno for each in (*node.posonlyargs, *node.args)}
                if not {"one", "other"} <= arguments.keys():
                    yield from ((name, arguments[name]) for name in names & arguments.keys())
