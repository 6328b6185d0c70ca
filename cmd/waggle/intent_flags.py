"""The flags of ``waggle render`` and ``waggle explain`` that affect the intent.

They are the options that the intent and every dialect declare, as in the agent.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from cells.safe_text import plain_reason
from reconcilers.intent.options import IntentOptions
from resources.option_declarations import Options
from resources.option_spelling import Setting, describe, list_items
from waggle.dialects import Dialects

if TYPE_CHECKING:
    from reconcilers.compile_manifests import OfflineSettings


T = TypeVar("T", bound=Options)
SECRETS_NAMESPACE: Final = "kube-system"


def add_intent_flags(parser: argparse._ActionsContainer, dialects: Dialects) -> None:
    """Add the flags."""
    parser.add_argument(
        "--secrets-namespace",
        metavar="NAME",
        help=f"namespace of the Secrets with TCP MD5 passwords (default: {SECRETS_NAMESPACE})",
    )
    for item in _settings(dialects):
        _add(parser, item)


def add_option_flags(
    parser: argparse._ActionsContainer,
    name: str,
    options: type[Options],
    fields: Collection[str] = (),
) -> None:
    """Add the flags of the options of a cell: of these fields, or of all."""
    for item in describe(name, options):
        if not fields or item.field in fields:
            _add(parser, item)


def given_intent_flags(args: argparse.Namespace, dialects: Dialects) -> list[str]:
    """Return the flags of `add_intent_flags` that are given."""
    secrets = [] if args.secrets_namespace is None else ["--secrets-namespace"]
    return secrets + [
        item.flag for item in _settings(dialects) if getattr(args, item.flag) is not None
    ]


def offline_settings(args: argparse.Namespace, dialects: Dialects) -> OfflineSettings:
    """Return the values of the flags of `add_intent_flags` and of ``--node``."""
    from reconcilers.compile_manifests import OfflineSettings

    return OfflineSettings(
        args.node,
        SECRETS_NAMESPACE if args.secrets_namespace is None else args.secrets_namespace,
        given_options(args, "", IntentOptions),
        {name: given_options(args, name, kind) for name, kind in dialects.options.items()},
    )


def _settings(dialects: Dialects) -> Iterator[Setting]:
    yield from describe("", IntentOptions)
    for name, options in dialects.options.items():
        yield from describe(name, options)


def _add(parser: argparse._ActionsContainer, item: Setting) -> None:
    more: dict[str, Any] = {"action": "append"} if item.is_list else {"type": _converter(item)}
    if item.is_bool:
        more |= {"nargs": "?", "const": True}
    is_unset = item.default in (None, (), "") or item.is_list
    default = "" if is_unset else f" (default: {_text(item)})"
    parser.add_argument(
        item.flag,
        dest=item.flag,
        metavar=item.metavar,
        help=(item.help + default).replace("%", "%%"),
        **more,
    )


def _text(item: Setting) -> str:
    return str(item.default).lower() if item.is_bool else str(item.default)


def _converter(item: Setting) -> Callable[[str], object]:
    def convert(text: str) -> object:
        try:
            value: object = msgspec.convert(text, item.type, strict=False)
        except msgspec.ValidationError as error:
            choices = f"is none of {', '.join(item.choices)}"
            wrong = choices if item.choices else plain_reason(str(error))
            raise argparse.ArgumentTypeError(f"{wrong}: {text!r}") from None
        return value

    return convert


def given_options(args: argparse.Namespace, name: str, options: type[T]) -> T:
    """Return the values of the flags of `add_option_flags`. Raises `InvalidOption`."""
    given = {item.field: getattr(args, item.flag, None) for item in describe(name, options)}
    values = {
        field: tuple(list_items(*value)) if isinstance(value, list) else value
        for field, value in given.items()
        if value is not None
    }
    return options(**values)
