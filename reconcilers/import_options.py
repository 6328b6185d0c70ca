"""The option of a dialect whose API has no field for routes that are accepted: `--cilium-import`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from resources.option_declarations import InvalidOption
from resources.option_spelling import list_items

if TYPE_CHECKING:
    from reconcilers.model import PrefixRule

METAVAR: Final = "'CIDR [ge N] [le N]'[,...]"
TEXT: Final = (
    "prefixes, separated by commas; repeatable. Their routes are accepted from all peers, and "
    "installed in the kernel; with ge and le those within that have these lengths. By default none, "
    "as the API has no field for it"
)
LABEL: Final = "Import"
"""The name of such a rule, of which no object is the origin."""
_RULE: Final = r"(?P<prefix>\S+)(?:\s+ge\s+(?P<ge>\d{1,3}))?(?:\s+le\s+(?P<le>\d{1,3}))?"


class ImportOptions:
    """Base of the options of a dialect with such an option, which declare it as ``imports``."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def imports(self) -> tuple[str, ...]:
            """The prefixes of an import option such as `--cilium-import`, as they are written."""

    def check_imports(self, flag: str) -> None:
        """Check the prefixes of an import option such as `--cilium-import`. Raises `InvalidOption`."""
        try:
            _ = self.import_rules
        except ValueError as error:
            raise InvalidOption(flag, str(error)) from None

    @property
    def import_rules(self) -> tuple[PrefixRule, ...]:
        """The rules of the prefixes of an import option, each once. Raises ValueError."""
        return rules(list_items(*self.imports))


def rules(texts: Iterable[str]) -> tuple[PrefixRule, ...]:
    """Return the rules of an import option: ``10.0.0.0/8 ge 16 le 24``, .... Raises ValueError."""
    given = list(texts)
    if not given:
        return ()
    # Every program reads the options, also where the dialect is off.
    from reconcilers.model import PrefixRule
    from resources.addresses import canonical_prefix

    permitted: dict[PrefixRule, None] = {}
    for text in given:
        match = re.fullmatch(_RULE, text)
        if match is None:
            raise ValueError(
                f"{text!r} is not a prefix such as 10.0.0.0/8, or 10.0.0.0/8 ge 16 le 24"
            )
        prefix = canonical_prefix(match["prefix"])
        length, longest = int(prefix.partition("/")[2]), 128 if ":" in prefix else 32
        ge, le = (None if match[word] is None else int(match[word]) for word in ("ge", "le"))
        for word, number in (("ge", ge), ("le", le)):
            if number is not None and not length <= number <= longest:
                raise ValueError(f"{text!r}: {word} {number} is not from {length} to {longest}")
        if ge is not None and le is not None and ge > le:
            raise ValueError(f"{text!r}: ge {ge} is above le {le}")
        permitted[PrefixRule(prefix, ge, le, label=LABEL)] = None
    return tuple(sorted(permitted, key=lambda rule: rule.sort_key))
