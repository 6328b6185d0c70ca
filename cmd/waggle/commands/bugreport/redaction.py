"""Removes secrets from JSON, YAML and text, before they leave the host in a report. Pure.

Three nets, each of which has what the others let through: members with the name of a secret, and the
contents of Secrets; texts in the form of a secret (private keys, tokens, passwords in URLs, commands
and lines of logs); and each secret value that the first two have found, wherever else it stands. A
text that is a document itself, as in a ConfigMap or in base64, is searched as one.

Each form is matched in linear time: names have at most 40 characters behind the word that makes them
one, and no form begins again within a run that it has read.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from resources.manifests.yamlfile import YamlError, parse_yaml

REDACTED: Final = "[redacted]"
MIN_OCTETS: Final = 4
"""A shorter value is not looked for elsewhere: each number of a report would be one."""
MAX_NESTED_OCTETS: Final = 1024 * 1024
"""Of a text that is searched as a document."""
MAX_OF_TEXTS: Final = 500
"""Secrets of texts that are looked for elsewhere: a log may have a token in each line."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_WORDS: Final = (
    r"pass(?:word|wd|phrase)s?|secret|token|credentials?|authorization|cookie|"
    r"private[-_]?key|api[-_]?key|access[-_]?key|client[-_]?key(?:[-_]?data)?|\bkey\b|"
    r"md5(?:[-_]?(?:key|sig))?|psk|auth(?:entication)?[-_]?key|key[-_]?string|"
    r"message-digest-key|\bauth\b|otlp[-_](?:\w{1,20}_)?headers"
)
_NAME: Final = re.compile(_WORDS, re.IGNORECASE)
_HARMLESS: Final = re.compile(
    r"(?:secret|token|password|credentials?|key)[-_]?(?:name|namespace|ref|file|path|type|selector)$"
    r"|secrets?[-_]?namespace$|api[-_]?key[-_]?id$|webhook[-_]?secret$",
    re.IGNORECASE,
)
"""Names of where a secret is, and not of the secret."""
_PLACE: Final = frozenset(
    {"apiVersion", "group", "key", "kind", "mode", "name", "namespace", "optional", "path", "type"}
)
"""Members of what has the name of a secret, and names its place: ``passwordSecret: {name: tor}``."""
_KEY: Final = rf"(?P<key>(?:{_WORDS})[\w.-]{{0,40}})"
_QUOTE: Final = r"\\*[\"']?"
"""A quote, which has a backslash in a text within a text."""
_QUOTED: Final = r"\\+[\"'][^\"'\n]*[\"']?|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'"
_VALUE: Final = rf"(?P<value>{_QUOTED}|[^\s\"',;}}\]]+)"
_TYPES: Final = r"(?:encrypted|clear|plain|is|was|hmac-[\w-]{1,20}|[0-9]{1,3})"
"""Words of configurations between the name and the value."""


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FORMS: Final = (
    re.compile(
        r"(?P<before>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----)(?P<value>.*?)(?=-----END|\Z)",
        re.DOTALL,
    ),
    _form(r"(?P<before>://[^/\s:@]{0,255}:)(?P<value>[^/\s@]+)(?=@)"),
    _form(r"(?P<before>://)(?P<value>[^/\s:@]{16,255})(?=@)"),
    _form(r"(?P<before>\b(?:bearer|basic)\s{1,9})(?P<value>[A-Za-z0-9+/=._~-]{4,})"),
    re.compile(r"(?P<before>(?<![\w-]))(?P<value>eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*)"),
    re.compile(
        r"(?P<before>(?<![\w-]))(?P<value>(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA)[\w-]{12,})"
    ),
    # Headers of HTTP: to the end of the line, as they have several words.
    _form(
        rf"(?P<before>(?P<key>authorization|cookie){_QUOTE}\s{{0,9}}[=:]\s{{0,9}})"
        rf"(?P<value>{_QUOTED}|[^\n]+)"
    ),
    # A line of YAML or of properties: a block of lines, or to the end of the line.
    re.compile(
        rf"(?P<before>^(?P<indent>[ \t]{{0,80}})[\w.-]{{0,40}}?{_KEY}[ \t]{{0,9}}:[ \t]{{0,9}}"
        r"[|>][-+0-9]{0,2}[ \t]*\n)(?P<value>(?:(?P=indent)[ \t]+[^\n]*\n?)+)",
        re.IGNORECASE | re.MULTILINE,
    ),
    re.compile(
        rf"(?P<before>^[ \t]{{0,80}}(?:- )?[\w.-]{{0,40}}?{_KEY}[ \t]{{0,9}}[=:][ \t]{{1,9}})"
        r"(?P<value>[^\s\"'\[{|>][^\n]*)",
        re.IGNORECASE | re.MULTILINE,
    ),
    # NAME=value, NAME: value; quoted, or one word.
    _form(rf"(?P<before>{_KEY}{_QUOTE}\s{{0,80}}[=:]\s{{0,80}}){_VALUE}"),
    # neighbor X password VALUE, --token VALUE; "no Secret shop/tor" has the name of an object.
    _form(
        r"(?P<before>(?:\bpass(?:word|wd|phrase)|\bmd5(?:-key)?|\bpsk|\bkey-string|"
        rf"\bauthentication-key|\B--[\w-]{{0,40}}?(?:{_WORDS})[\w-]{{0,40}})\s{{1,9}}"
        rf"(?:{_TYPES}\s{{1,9}})?){_VALUE}"
    ),
)
_PLAIN_WORD: Final = re.compile(r"[a-z]+[.:,]?|[A-Z][a-z]+|[\d.:/]+|<.*>|\[.*")
"""Words of prose and numbers, which a form of a secret may surround."""


class Redaction:
    """The secrets that were found so far, and what is removed for them."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._ordered: tuple[str, ...] = ()
        self._of_texts: set[str] = set()

    def learn(self, value: object) -> None:
        """Collect the secrets of a document."""
        match value:
            case dict():
                self._learn_members(value)
            case list() | tuple():
                for part in _arguments(value):
                    if isinstance(part, _Secret):
                        self.learn_value(str(part.value))
                    else:
                        self.learn(part)
            case str():
                self._learn_text(value)

    def learn_value(self, value: str) -> None:
        """Add one secret, and its form in base64; a document or PEM in it is one with its own."""
        for text in (value, *_decoded(value)):
            for form in {text, text.strip()}:
                self._add(form)
                self._add(base64.b64encode(form.encode()).decode())
            if text != value or "\n" in text:
                self._learn_text(text)
            user, colon, password = text.strip().partition(":")
            if colon and user.isalnum() and not re.search(r"\s", password):
                self._add(password)

    def learn_environment(self, environ: Mapping[str, str]) -> None:
        """Add the values of variables whose name is that of a secret."""
        for name, value in environ.items():
            if is_secret_name(name):
                self.learn_value(value)

    def document(self, value: object) -> Any:  # noqa: ANN401  JSON
        """Return a document without its secrets."""
        match value:
            case dict():
                return {
                    self.text(str(name)): (
                        _hidden(member) if isinstance(member, _Secret) else self.document(member)
                    )
                    for name, member in _members(value).items()
                }
            case list() | tuple():
                return [
                    REDACTED if isinstance(part, _Secret) else self.document(part)
                    for part in _arguments(value)
                ]
            case str():
                return self.text(value)
        return value

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        # Known secrets first: a form may have read only a part of a secret.
        return _without_forms(self._known(text))

    def _add(self, text: str) -> None:
        if len(text.encode()) >= MIN_OCTETS and text != REDACTED:
            escaped = json.dumps(text)[1:-1]
            self._values |= {text, escaped, json.dumps(escaped)[1:-1]}
            self._ordered = ()

    def _known(self, text: str) -> str:
        if not self._ordered:
            # The longest one first: a secret may be a part of another.
            self._ordered = tuple(sorted(self._values, key=len, reverse=True))
        for value in self._ordered:
            if value in text:
                text = text.replace(value, REDACTED)
        return text

    def _learn_members(self, value: Mapping[str, Any]) -> None:
        for name, member in _members(value).items():
            if name == LAST_APPLIED:
                self._learn_text(str(value[name]))
            elif isinstance(member, _Secret):
                for text in _scalars(member.value):
                    self.learn_value(text)
            else:
                self.learn(member)

    def _learn_text(self, text: str) -> None:
        for form in _FORMS:
            for match in form.finditer(text):
                secret = match["value"].strip("\\\"' \n")
                if len(self._of_texts) == MAX_OF_TEXTS:
                    break
                if _is_redacted(match) and not _PLAIN_WORD.fullmatch(secret):
                    self._of_texts.add(secret)
                    self._add(secret)
        if _may_be_document(text):
            try:
                for document in parse_yaml(text.encode(errors="replace")):
                    if not isinstance(document.value, str):
                        self.learn(document.value)
            except (YamlError, RecursionError):
                return  # No document: its forms are all that there is.


class _Secret:
    """A member or an argument that is a secret."""

    def __init__(self, value: object) -> None:
        self.value = value


def _members(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an object, its secrets as `_Secret`."""
    kind = value.get("kind")
    # As of the environment of a container: a name beside its value.
    named = isinstance(value.get("name"), str) and is_secret_name(value["name"])
    members: dict[str, Any] = {}
    for name, member in value.items():
        is_content = kind == "Secret" and name in ("data", "stringData")
        if name == LAST_APPLIED or is_content or (named and name == "value"):
            members[name] = _Secret(member)
        elif kind == "SecretList" and name == "items" and isinstance(member, list):
            # Items of a list have no kind of their own.
            members[name] = [
                {**item, "kind": "Secret"} if isinstance(item, dict) else item for item in member
            ]
        elif not isinstance(name, str) or not is_secret_name(name):
            members[name] = member
        elif isinstance(member, dict):
            members[name] = _beneath(member)
        elif member is None or isinstance(member, bool):
            members[name] = member
        else:
            members[name] = _Secret(member)
    return members


def _beneath(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has the name of a secret: all of it is one, unless it names the place of one."""
    return {
        name: member
        if name in _PLACE or _HARMLESS.search(str(name)) or isinstance(member, bool | None)
        else _Secret(member)
        for name, member in value.items()
    }


def _arguments(values: Sequence[Any]) -> Iterator[Any]:
    """Yield the parts of a list, with the value behind ``--token`` as `_Secret`."""
    is_value = False
    for value in values:
        yield _Secret(value) if is_value and isinstance(value, str) else value
        is_value = (
            isinstance(value, str)
            and value.startswith("-")
            and "=" not in value
            and is_secret_name(value)
        )


def _scalars(value: object) -> Iterator[str]:
    """Yield the texts and numbers of a value."""
    match value:
        case dict():
            for member in value.values():
                yield from _scalars(member)
        case list() | tuple():
            for part in value:
                yield from _scalars(part)
        case str() | int() | float() if not isinstance(value, bool):
            yield str(value)


def _hidden(secret: _Secret) -> Any:  # noqa: ANN401  JSON
    """Return a secret without its content: the names of its members stay."""
    match secret.value:
        case dict():
            return {str(name): _hidden(_Secret(member)) for name, member in secret.value.items()}
        case list() | tuple():
            return [_hidden(_Secret(part)) for part in secret.value]
        case bool() | None:
            return secret.value
    return REDACTED


def is_secret_name(name: str) -> bool:
    """Return whether a member, variable or option of that name has a secret."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return bool(_NAME.search(words.replace("_", "-"))) and not _HARMLESS.search(words)


def _is_redacted(match: re.Match[str]) -> bool:
    """Return whether the form has a secret, and not the place of one, as ``secretName: tor``."""
    key = match.groupdict().get("key")
    return key is None or not _HARMLESS.search(key)


def _without_forms(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        is_done = match["value"].startswith(REDACTED[:-1])
        return match[0] if is_done or not _is_redacted(match) else f"{match['before']}{REDACTED}"

    for form in _FORMS:
        text = form.sub(replaced, text)
    return text


def _may_be_document(text: str) -> bool:
    """Return whether it is worth a parser: it has the name of a secret, and more than one word."""
    if len(text) > MAX_NESTED_OCTETS or not ("\n" in text or text.lstrip()[:1] in ("{", "[")):
        return False
    return _NAME.search(text) is not None


def _decoded(value: str) -> Iterator[str]:
    """Yield the text of a value in base64, if it is one."""
    try:
        yield base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return
