"""`waggle crds`: prints the CustomResourceDefinitions, generated from the row types of the kinds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from waggle import output
from waggle.dialects import Dialects
from waggle.manifest_flag import STANDARD_INPUT, complain_of_input
from waggle.output import (
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
    USAGE,
    complain,
    exit_statuses,
    reason_of,
)
from waggle.progress import expect_input
from waggle.tables import Column

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect
    from resources.kind import Kind

NAME = "crds"
COLUMNS = (
    Column("NAME", lambda definition: definition["metadata"]["name"]),
    Column("KIND", lambda definition: definition["spec"]["names"]["kind"], minor=1),
    Column("SCOPE", lambda definition: definition["spec"]["scope"], minor=3),
    Column(
        "VERSIONS",
        lambda definition: ",".join(v["name"] for v in definition["spec"]["versions"]),
        minor=2,
    ),
)
EXAMPLES = """\
examples:
  create what is missing; kubectl leaves what the cluster has:
    waggle crds cilium | kubectl create -f -
  update Waggle's definitions, and no other project's:
    kubectl get crds -o json | waggle crds cilium --installed - |
      kubectl apply --server-side --force-conflicts -f -
  delete Waggle's definitions, with all objects of their kinds:
    kubectl get crds -o json | waggle crds --installed - --ours -o name |
      xargs -r kubectl delete
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="print the CustomResourceDefinitions, for kubectl create",
        description="Print the CustomResourceDefinitions of the kinds that Waggle knows, generated "
        "from the types that decode the objects. Definitions that another project has installed "
        "stay as they are: with --installed they are not printed.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success",
                EXIT_USAGE: f"{USAGE}, or unreadable input",
                EXIT_NOT_FOUND: "no dialect or kind of that name",
            },
            EXAMPLES,
        ),
    )
    names = ", ".join(entry.name for entry in dialects)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"only these dialects ({names}) or kinds (default: all)",
    )
    output.add_output_flags(parser, ("yaml", "json", "name", "table"), "yaml")
    parser.add_argument(
        "--installed",
        metavar="FILE",
        help="the cluster's definitions, as kubectl get crds -o json prints them (- is standard "
        "input): skip definitions of other owners",
    )
    parser.add_argument(
        "--ours",
        action="store_true",
        help="with --installed: only definitions that are there and are Waggle's",
    )
    parser.add_argument(
        "--replace",
        action="append",
        default=[],
        metavar="KIND",
        help="with --installed: print this one although the cluster has another project's; may be "
        "repeated",
    )
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Print the definitions; returns the exit status."""
    from resources.crds.generate import custom_resource_definition

    if args.installed is None and (args.ours or args.replace):
        flag = "--ours" if args.ours else "--replace"
        complain("waggle crds", f"{flag} needs --installed, the definitions of the cluster")
        return EXIT_USAGE
    if args.ours and args.replace:
        complain("waggle crds", "--replace has no effect with --ours: give one of them")
        return EXIT_USAGE
    catalog = _Catalog(args.dialects.load())
    unknown = [name for name in args.names if not catalog.named(name)]
    unknown += [name for name in args.replace if len(catalog.named(name)) != 1]
    if unknown:
        listed = ", ".join(unknown)
        hint = catalog.hint(unknown)
        complain_of_input(args, f"no dialect or kind {listed}{hint}", "NotFound")
        return EXIT_NOT_FOUND
    names = {kind.name for name in args.names for kind in catalog.named(name)}
    wanted = [kind for kind in catalog.kinds if not names or kind.name in names]
    definitions = [custom_resource_definition(kind) for kind in wanted]
    if args.installed is not None:
        if args.installed == STANDARD_INPUT:
            expect_input(args)
        replaced = {kind.name for name in args.replace for kind in catalog.named(name)}
        try:
            definitions = _beside_installed(definitions, args.installed, replaced, ours=args.ours)
        except _UnreadableError as error:
            complain_of_input(args, str(error))
            return EXIT_USAGE
    _print(definitions, args)
    return EXIT_OK


class _Catalog:
    """The kinds with a definition, by each word that names them."""

    def __init__(self, dialects: Sequence[type[Dialect]]) -> None:
        from reconcilers.compile_manifests import kinds_of
        from resources.crds.generate import defined
        from resources.kind import Kinds

        of_dialects = [dialect.all_kinds() for dialect in dialects]
        self.kinds = defined(Kinds(kinds_of(dialects), *of_dialects))
        self._names = [*(dialect.name for dialect in dialects), *(kind.name for kind in self.kinds)]
        self._by_word: dict[str, tuple[Kind[Any], ...]] = {
            dialect.name: defined(dialect.all_kinds()) for dialect in dialects
        }
        for kind in self.kinds:
            for word in (kind.name, kind.plural, f"{kind.plural}.{kind.group}"):
                self._by_word[word.lower()] = (kind,)

    def named(self, word: str) -> tuple[Kind[Any], ...]:
        """Return the kinds of a dialect, or the kind of a name or resource name; else nothing."""
        return self._by_word.get(word.lower(), ())

    def hint(self, unknown: Sequence[str]) -> str:
        """Return the end of a sentence about unknown words: near names, else all of them."""
        from resources.schema import did_you_mean

        near = [text for word in unknown if (text := did_you_mean(word, self._names))]
        return "".join(near) or f"; the names are {', '.join(self._names)}"


class _UnreadableError(Exception):
    """The file of ``--installed`` cannot be read."""


def _beside_installed(
    definitions: Iterable[dict[str, Any]], path: str, replaced: set[str], *, ours: bool
) -> list[dict[str, Any]]:
    """Return the definitions that may be applied, or with ``ours`` deleted; reports what is skipped.

    Raises `_UnreadableError`.
    """
    from resources.crds.installed import InstalledError, is_generated, read_installed
    from resources.given_file import read_given

    try:
        data = sys.stdin.buffer.read() if path == STANDARD_INPUT else read_given(path)
        installed: Mapping[str, Mapping[str, Any]] = read_installed(data)
    except OSError as error:
        raise _UnreadableError(reason_of(error)) from None
    except InstalledError as error:
        name = "standard input" if path == STANDARD_INPUT else path
        raise _UnreadableError(f"{name}: {error}") from None
    result = []
    for definition in definitions:
        name, kind = definition["metadata"]["name"], definition["spec"]["names"]["kind"]
        present = installed.get(name)
        if present is None:
            if not ours:
                result.append(definition)
        elif is_generated(present) or kind in replaced:
            result.append(definition)
        else:
            hint = "" if ours else f"; --replace {kind} prints it"
            complain("waggle crds", f"skipped: {name} is installed, and is not Waggle's{hint}")
    return result


def _print(definitions: Sequence[dict[str, Any]], args: argparse.Namespace) -> None:
    """Print YAML documents, one List as JSON, names for kubectl, or a table."""
    if args.output == "table":
        output.table(COLUMNS, definitions, args)
    elif args.output == "name":
        for definition in definitions:
            print(f"customresourcedefinition.apiextensions.k8s.io/{definition['metadata']['name']}")
    elif args.output != "yaml":
        import msgspec

        document = {"apiVersion": "v1", "kind": "List", "items": definitions}
        output.dump_value(msgspec.to_builtins(document), args.output)
    else:
        print(as_yaml(definitions), end="")


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
