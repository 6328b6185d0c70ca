"""`waggle crds`: prints the CustomResourceDefinitions, generated from the row types of the kinds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from waggle.dialects import Dialects
from waggle.output import EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, USAGE, exit_statuses

NAME = "crds"


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="print the CustomResourceDefinitions, for kubectl apply",
        description="Print the CustomResourceDefinitions of the kinds that Waggle knows, generated "
        "from the types that decode the objects. Keep definitions that the owner of an API has "
        "installed.",
        epilog=exit_statuses(
            {EXIT_OK: "success", EXIT_USAGE: USAGE, EXIT_NOT_FOUND: "no kind of that name"},
            "example:\n  waggle crds | kubectl apply --server-side -f -",
        ),
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only these kinds (default: all)")
    parser.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        default="yaml",
        help="YAML documents, or one List as JSON (default: %(default)s)",
    )
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Print the definitions; returns the exit status."""
    from reconcilers.offline import kinds_of
    from resources.crds.generate import custom_resource_definition, defined

    dialects = args.dialects.load()
    known_kinds = defined((*kinds_of(dialects), *(k for d in dialects for k in d.defined_kinds)))
    by_name = {word.lower(): kind for kind in known_kinds for word in (kind.name, kind.plural)}
    unknown = [name for name in args.kinds if name.lower() not in by_name]
    if unknown:
        known = ", ".join(kind.name for kind in known_kinds)
        print(f"waggle crds: no kind {', '.join(unknown)}; the kinds are {known}", file=sys.stderr)
        return EXIT_NOT_FOUND
    wanted = {by_name[name.lower()].name for name in args.kinds}
    found = [custom_resource_definition(k) for k in known_kinds if not wanted or k.name in wanted]
    if args.output == "json":
        import msgspec

        document = {"apiVersion": "v1", "kind": "List", "items": found}
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        print(as_yaml(found), end="")
    return EXIT_OK


def as_yaml(definitions: Sequence[dict[str, Any]]) -> str:
    """Return definitions as YAML documents."""
    import yaml

    return str(yaml.dump_all(definitions, Dumper=_plain_dumper(), sort_keys=False, width=96))


def _plain_dumper() -> type:
    """Return a dumper that repeats shared parts instead of writing anchors."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the base class's signature
            return True

    return Dumper
