"""Each declaration of a dialect that no test of a room has on its own: what follows from it."""

# ruff: noqa: ARG002  the protocol's signatures

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from msgspec import Struct

from cells.dialects.cell import DialectCell, agent_cell
from cells.hive import Group
from cells.operator.kubernetes import read_of_cluster
from deploy import rbac
from reconcilers import dialect as api
from reconcilers.compile_manifests import kinds_of
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef, Problem
from reconcilers.operator import InProcessOperator, Planner
from resources.core.kinds import NODE, SECRET, SERVICE
from resources.kind import Kind
from resources.option_declarations import Options, setting
from resources.tables import Tables
from statedb import Database, Snapshot
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.beacon.options import BeaconOptions
from tests.dialects.lighthouse.dialect import LighthouseDialect
from tests.dialects.lighthouse.kinds import LIGHTHOUSE
from tests.dialects.objects import beacon, lighthouse, service
from tests.reconcilers.build import Cluster
from tests.support import plain_yaml
from tests.support.cells import entry
from waggle.__main__ import main
from waggle.dialects import Dialects

ROOT = Path(__file__).parents[3]


def cell(dialect: type[api.Dialect]) -> DialectCell:
    return agent_cell(entry(dialect))


def parsed(text: Iterable[str]) -> Any:  # noqa: ANN401  YAML
    return plain_yaml.load("".join(text))


# Secrets


class Places(Options, frozen=True):
    namespace: Annotated[str, setting("of its Secrets", flag="--places-namespace")] = "lights"


class WithSecrets(api.Dialect):
    name, title = "keys", "Keys"
    kinds = cluster_kinds = (NODE, SECRET, BEACON)
    options_type = Places


def test_secrets_of_a_namespace_of_the_dialects_own_are_permitted_there() -> None:
    class Own(WithSecrets):
        extensions = (api.DialectSecrets(lambda *_: (), option="namespace"),)

    text = "".join(rbac.secrets(cell(Own)))
    assert '{{ default "lights" (.keys).namespace }}, name: ""' in text
    assert list(rbac.namespaces(cell(Own))) == ['- {{ default "lights" (.keys).namespace }}\n']
    assert list(rbac.secrets_namespace(cell(Own))) == []


def test_named_secrets_are_permitted_by_their_names() -> None:
    class Named(WithSecrets):
        extensions = (
            api.DialectSecrets(lambda *_: (), option="namespace", names=("lamp", "lens")),
        )

    names = [text.partition('name: "')[2] for text in rbac.secrets(cell(Named)) if "name:" in text]
    assert [name.partition('"')[0] for name in names] == ["lamp", "lens"]
    assert list(rbac.secrets_namespace(cell(Named))) == []


def test_other_secrets_are_in_the_programs_namespace() -> None:
    assert list(rbac.secrets(cell(WithSecrets))) == []
    assert parsed(rbac.secrets_namespace(cell(WithSecrets))) == "keys"
    assert list(rbac.secrets_namespace(cell(BeaconDialect))) == []


# The operator


def test_generated_kinds_are_written_and_deleted_by_the_operator() -> None:
    class Generating(api.Dialect):
        name, title, kinds = "generating", "Generating", ()
        cluster_kinds = (NODE, LIGHTHOUSE)
        extensions = (api.Operation(api.operate, generated_kinds=(BEACON,)),)

    read, write = parsed(rbac.operator_rules(cell(Generating)))
    assert (read["resources"], read["verbs"]) == (["lighthouses"], ["list", "watch"])
    assert (write["resources"], write["verbs"]) == (
        ["beacons"],
        ["get", "create", "patch", "delete"],
    )


class Choosing(api.Dialect):
    """Reads Lighthouses in the operator where an option asks for it; counts its runs."""

    name, title, kinds = "choosing", "Choosing", (NODE, SERVICE, BEACON)
    operator_options_type = BeaconOptions
    cluster_kinds = (NODE, BEACON, LIGHTHOUSE)
    extensions: ClassVar[tuple[api.Extension, ...]] = (
        api.OptionalKinds(
            (LIGHTHOUSE,),
            when=lambda options: bool(options.community > 1),
            option="community",
            operator=True,
        ),
    )
    options: BeaconOptions
    runs = 0


def counted(dialect: Choosing, *_: object) -> api.ClusterIntent:
    type(dialect).runs += 1
    return api.ClusterIntent()


class Following(Choosing):
    """Depends on Services as well."""

    extensions = (*Choosing.extensions, api.Operation(counted, follows=(SERVICE,)))


def of(dialect: type[Choosing], community: int = 1) -> tuple[Database, Tables, Choosing]:
    db = Database()
    tables = Tables(db, kinds_of([dialect]))
    return db, tables, dialect(tables, BeaconOptions(community))


@pytest.mark.parametrize(("community", "names"), [(1, {"Node", "Beacon"}), (2, {"Lighthouse"})])
def test_the_operator_reads_the_kinds_that_its_options_ask_for(
    community: int, names: set[str]
) -> None:
    db, _, dialect = of(Choosing, community)
    read = {kind.name for kind in read_of_cluster(Group((dialect,))).kinds}
    assert read == names | {"Node", "ServiceCIDR", "Beacon"}
    followed = {table.name for table in Planner(db, [dialect], "kube-system").followed}
    assert ("lighthouses" in followed) is ("Lighthouse" in names)


def test_a_change_of_an_operated_table_runs_the_operators_part_and_no_other_change_does() -> None:
    db, tables, dialect = of(Following)
    intent = IntentTables(db)
    operator = InProcessOperator(db, intent, Planner(db, [dialect], "kube-system", stored=False))

    def runs(kind: Kind[Any] | None = None, value: Any = None) -> int:  # noqa: ANN401
        before = Following.runs
        if kind is not None:
            with db.write(tables.of(kind)) as txn:
                tables.of(kind).upsert(txn, kind.decode(value))
        operator.run()
        return Following.runs - before

    assert runs() == 1
    assert runs(BEACON, beacon()) == 1
    assert runs(SERVICE, service("web")) == 1
    assert runs(LIGHTHOUSE, lighthouse("coast")) == 0
    assert runs() == 0


# Explanation


def test_problems_of_selecting_kinds_are_why_a_node_has_no_peers() -> None:
    class Wrong(BeaconDialect):
        extensions = (api.Explanation(selecting={BEACON: lambda _: ()}),)

        def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
            return api.NodeIntent(
                problems=(
                    Problem((ObjectRef(BEACON.name, "", "b"),), "", "the Beacon is dark"),
                    Problem((ObjectRef(SERVICE.name, "d", "s"),), "", "the Service is wrong"),
                )
            )

    cluster = Cluster(also=[Wrong])
    cluster.run()
    ((explanation,),) = (some for some in cluster.compiler.explainer().explain() if some)
    assert explanation.reason == "NoPeers"
    assert "; the Beacon is dark" in explanation.message
    assert "the Service is wrong" not in explanation.message


# Conversion


def light(value: Mapping[str, Any], notes: api.Notes) -> list[dict[str, Any]] | None:
    """Convert a Light, which no kind reads."""
    if value.get("kind") != "Light":
        return None
    name = value["metadata"]["name"]
    notes.add(ObjectRef("Light", "", name), "spec.hue", "is omitted")
    return [beacon(name)]


def test_a_draft_is_converted_in_place_of_being_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Drafting(BeaconDialect):
        extensions = (api.Conversion(drafts="Light", draft=light),)

    path = tmp_path / "light.json"
    draft = {"apiVersion": "test.waggle.dev/v0", "kind": "Light", "metadata": {"name": "l"}}
    path.write_text(json.dumps(draft))
    assert main(["convert", "-f", str(path)], Dialects((entry(Drafting),))) == 0
    shown = capsys.readouterr()
    assert plain_yaml.load(shown.out) == beacon("l")
    assert shown.err == "waggle convert: note: Light/l: spec.hue: is omitted\n"
    assert main(["convert", "-f", str(path)], Dialects((entry(LighthouseDialect),))) != 0


# All of them


def test_every_hook_and_every_extension_is_on_the_page() -> None:
    page = (ROOT / "docs/dialects.md").read_text()
    hooks = {name for name in vars(api.Dialect) if not name.startswith("_")}
    assert {hook for hook in hooks if f"`{hook}" not in page} == set()
    extensions = [
        one
        for one in vars(api).values()
        if isinstance(one, type) and issubclass(one, api.Extension) and one is not api.Extension
    ]
    assert extensions
    shown = [f"`{one.__name__}({', '.join(one.__struct_fields__)})`" for one in extensions]
    assert [text for text in shown if text not in page] == []


@pytest.mark.parametrize("intent", [api.NodeIntent, api.ClusterIntent])
def test_every_field_of_an_intent_is_on_the_page(intent: type[Struct]) -> None:
    page = (ROOT / "docs/dialects.md").read_text()
    assert f"`{intent.__name__}({', '.join(intent.__struct_fields__)})`" in page


def own_attributes(source: str) -> Iterator[str]:
    """Yield the attributes that a module's classes declare, or set on ``self``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case ast.ClassDef(body=body):
                for of_class in body:
                    if isinstance(of_class, ast.AnnAssign) and isinstance(
                        of_class.target, ast.Name
                    ):
                        yield of_class.target.id


def set_from_outside(source: str, names: Collection[str]) -> Iterator[str]:
    """Yield the assignments to attributes of these names of what is not ``self``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=of, attr=name, ctx=ast.Store() | ast.Del()) if name in names:
                if ast.unparse(of) not in {"self", "cls"}:
                    yield ast.unparse(node)
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                if name in names:
                    yield ast.unparse(node)


def test_no_module_sets_an_attribute_of_a_dialect_from_outside() -> None:
    """`compile` is a function of its arguments: what it depends on is in the contexts.

    An attribute that no class declares is an error of mypy.
    """
    modules = [ROOT / "reconcilers/dialect/protocol.py"]
    modules += (ROOT / "reconcilers").glob("*/dialect.py")
    names = {name for path in modules for name in own_attributes(path.read_text())}
    assert names >= {"tables", "options", "sources", "name", "kinds"}
    places = [
        f"{path.relative_to(ROOT)}: {text}"
        for room in ("cells", "reconcilers")
        for path in sorted((ROOT / room).rglob("*.py"))
        for text in set_from_outside(path.read_text(), names)
    ]
    assert places == []


@pytest.mark.parametrize(
    "text", ["dialect.sources = ()", "del dialect.sources", "setattr(dialect, 'sources', ())"]
)
def test_an_attribute_that_is_set_from_outside_is_found(text: str) -> None:
    (place,) = set_from_outside(text, {"sources"})
    assert place in text
    assert list(set_from_outside(text.replace("dialect", "self"), {"other"})) == []


def test_every_row_of_a_table_of_the_page_has_the_columns_of_its_head() -> None:
    lines = (ROOT / "docs/dialects.md").read_text().splitlines()
    columns = 0
    broken = []
    for line in lines:
        found = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        columns = columns or found
        if found not in (0, columns):
            broken.append(line)
        columns = found and columns
    assert broken == []
