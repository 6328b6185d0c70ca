"""Removes secrets from JSON, YAML and text, before they leave the host in a report. Pure.

Three nets, each of which has what the others let through: members with the name of a secret, and the
contents of Secrets; texts in the form of a secret (private keys, tokens, passwords in URLs, commands
and lines of logs); and each secret value that the first two have found, wherever else it stands.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

REDACTED: Final = "[redacted]"
MIN_OCTETS: Final = 4
"""A shorter value is not looked for elsewhere: each number of a report would be one."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_WORDS: Final = (
    r"pass(?:word|wd|phrase)s?|secret|token|credentials?|authorization|cookie|"
    r"private[-_]?key|api[-_]?key|access[-_]?key|client[-_]?key(?:[-_]?data)?|\bkey\b|"
    r"md5(?:[-_]?(?:key|sig))?|psk|auth[-_]?key"
)
_NAME: Final = re.compile(_WORDS, re.IGNORECASE)
_HARMLESS: Final = re.compile(
    r"(?:secret|token|password|credentials?|key)[-_]?(?:name|namespace|ref|file|path|type|selector)$"
    r"|secrets?[-_]?namespace$|api[-_]?key[-_]?id$|webhook[-_]?secret$",
    re.IGNORECASE,
)
"""Names of where a secret is, and not of the secret."""
_VALUE: Final = r"(?:\"(?:\\.|[^\"\\])*\"|'[^']*'|[^\s\"',;}\]]+)"
_FORMS: Final = (
    re.compile(r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL),
    re.compile(r"((?:://)[^/\s:@]*:)[^/\s@]+(?=@)"),
    re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{4,}", re.IGNORECASE),
    re.compile(r"()\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"),
    # NAME=value, NAME: value; quoted, or one word.
    re.compile(rf"([\w.-]*(?:{_WORDS})[\w.-]*[\"']?\s*[=:]\s*){_VALUE}", re.IGNORECASE),
    # neighbor X password VALUE, --token VALUE; "no Secret shop/tor" has the name of an object.
    re.compile(
        rf"((?:\bpass(?:word|wd|phrase)|\bmd5(?:-key)?|\bpsk|--[\w-]*(?:{_WORDS})[\w-]*)\s+"
        rf"(?:encrypted\s+|[0-9]\s+)?){_VALUE}",
        re.IGNORECASE,
    ),
)


class Redaction:
    """The secrets that were found so far, and what is removed for them."""

    def __init__(self) -> None:
        self._values: set[str] = set()

    def learn(self, value: object) -> None:
        """Collect the secrets of a document."""
        self._walk(value)

    def learn_value(self, value: str) -> None:
        """Add one secret, and its form in base64."""
        for text in (value, value.strip(), *_decoded(value)):
            if len(text.encode()) >= MIN_OCTETS and text != REDACTED:
                self._values.add(text)
                self._values.add(base64.b64encode(text.encode()).decode())

    def learn_environment(self, environ: Mapping[str, str]) -> None:
        """Add the values of variables whose name is that of a secret."""
        for name, value in environ.items():
            if is_secret_name(name):
                self.learn_value(value)

    def document(self, value: object) -> Any:  # noqa: ANN401  JSON
        """Return a document without its secrets."""
        return self._walk(value)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._known(_without_forms(text))

    def _known(self, text: str) -> str:
        # The longest one first: a secret may be a part of another.
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, REDACTED)
            escaped = json.dumps(value)[1:-1]
            if escaped != value:
                text = text.replace(escaped, REDACTED)
        return text

    def _walk(self, value: object, *, secret: bool = False) -> Any:  # noqa: ANN401  JSON
        match value:
            case dict():
                return self._members(value, secret=secret)
            case list() | tuple():
                return [self._walk(part, secret=secret) for part in value]
            case bool() | None:
                return value
            case _ if secret:
                self.learn_value(str(value))
                return REDACTED
            case str():
                return self.text(value)
        return value

    def _members(self, value: Mapping[str, Any], *, secret: bool) -> dict[str, Any]:
        is_secret = value.get("kind") == "Secret"
        # As of the environment of a container: a name beside its value.
        named = isinstance(value.get("name"), str) and is_secret_name(value["name"])
        members = {}
        for name, member in value.items():
            if name == LAST_APPLIED:
                self._learn_applied(member)
                members[name] = REDACTED
                continue
            is_content = is_secret and name in ("data", "stringData")
            is_value = named and name == "value"
            hidden = secret or is_content or is_value or _holds_secret(name, member)
            members[self.text(str(name))] = self._walk(member, secret=hidden)
        return members

    def _learn_applied(self, text: object) -> None:
        try:
            self._walk(json.loads(str(text)))
        except ValueError:
            self.learn_value(str(text))


def is_secret_name(name: str) -> bool:
    """Return whether a member, variable or option of that name has a secret."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return bool(_NAME.search(words.replace("_", "-"))) and not _HARMLESS.search(words)


def _holds_secret(name: str, member: object) -> bool:
    """Return whether a member is a secret itself; one with members names the place of one."""
    return is_secret_name(name) and not isinstance(member, dict)


def _without_forms(text: str) -> str:
    for form in _FORMS:
        text = form.sub(lambda match: f"{match[1]}{REDACTED}", text)
    return text


def _decoded(value: str) -> Iterable[str]:
    """Yield the text of a value in base64, if it is one."""
    try:
        yield base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return
