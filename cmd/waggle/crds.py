"""`waggle crds`: the CustomResourceDefinitions, generated from the row types that read the objects."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from waggle.dialects import Dialects
from waggle.output import EXIT_NOT_FOUND, EXIT_OK

NAME = "crds"


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its flags."""
    parser = subparsers.add_parser(
        NAME,
        help="the CustomResourceDefinitions, for kubectl apply",
        description="Prints the CustomResourceDefinitions of the kinds that Waggle reads. They are "
        "made from the types that read the objects. Keep the definitions that the owner of an API has "
        "installed.",
        epilog="For example: waggle crds | kubectl apply --server-side -f -",
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only these (default: all)")
    parser.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        default="yaml",
        help="documents, or one List (default: %(default)s)",
    )
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Print them; the exit status."""
    from reconcilers.offline import kinds_of
    from resources.crds.generate import custom_resource_definition, defined

    known_kinds = defined(kinds_of(args.dialects.load()))
    by_name = {word.lower(): kind for kind in known_kinds for word in (kind.name, kind.plural)}
    unknown = [name for name in args.kinds if name.lower() not in by_name]
    if unknown:
        known = ", ".join(kind.name for kind in known_kinds)
        print(f"waggle crds: no kind {', '.join(unknown)}; there are {known}", file=sys.stderr)
        return EXIT_NOT_FOUND
    asked = {by_name[name.lower()].name for name in args.kinds}
    found = [custom_resource_definition(k) for k in known_kinds if not asked or k.name in asked]
    if args.output == "json":
        import msgspec

        document = {"apiVersion": "v1", "kind": "List", "items": found}
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        print(as_yaml(found), end="")
    return EXIT_OK


def as_yaml(definitions: Sequence[dict[str, Any]]) -> str:
    """Print definitions as YAML documents."""
    import yaml

    return str(yaml.dump_all(definitions, Dumper=_plain_dumper(), sort_keys=False, width=96))


def _plain_dumper() -> type:
    """Make a dumper that writes a part out wherever it is used: no anchors."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the base class's signature
            return True

    return Dumper
