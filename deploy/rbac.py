"""The rules of the chart's ClusterRoles that follow from API dialects, as a helm template.

Each dialect's rules are rendered where its cell is on, and those of an option where that is on. What
the programs need whatever the dialect is in ``templates/agent-rbac.yaml`` and ``operator-rbac.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cells.dialects.cell import DialectCell
from reconcilers.dialect import Dialect
from resources.core.kinds import NODE, SECRET
from resources.host.kinds import NODE_NETWORK
from resources.kind import Kind, Kinds
from resources.kubernetes.migration import versioned_kinds

HEAD = """\
{{/* Rules of the enabled API dialects. Made by `make manifests` from what they declare.
     Do not edit. Each takes the cells of the configuration. */}}
"""

APART = (NODE, SECRET, NODE_NETWORK)
"""Kinds whose rules are in the chart: Nodes are always read, Secrets in one namespace, and NodeNetworks
only from manifests."""


EMPTY = '""'
"""The API group of Kubernetes' first kinds."""


def template(cells: Sequence[DialectCell]) -> str:
    """Return the text of the template."""
    parts = {
        "agent": agent_rules,
        "agent.report": report_rules,
        "operator": operator_rules,
        "operator.migrate": migration_rules,
    }
    text = HEAD
    for part, rules in parts.items():
        text += f'\n{{{{- define "waggle.dialects.{part}" }}}}\n'
        for cell in cells:
            found = "".join(rules(cell))
            if found:
                text += f"{{{{- if {_is_on(cell)} }}}}\n{found}{{{{- end }}}}\n"
        text += "{{- end }}\n"
    return text


def agent_rules(cell: DialectCell) -> Iterator[str]:
    """Yield what an agent needs to read, and what its dialect declares besides."""
    yield from _rules(cell.dialect.kinds, ("list", "watch"))
    yield from _declared(cell, operator=False)


def report_rules(cell: DialectCell) -> Iterator[str]:
    """Yield what an agent needs to write statuses."""
    yield from _rules(cell.dialect.reported_kinds, ("get",))
    yield from _rules(cell.dialect.reported_kinds, ("patch",), "/status")


def operator_rules(cell: DialectCell) -> Iterator[str]:
    """Yield what the operator needs to read, generate and report."""
    dialect = cell.dialect
    yield from _rules(dialect.cluster_kinds, ("list", "watch"))
    yield from _rules(dialect.generated_kinds, ("get", "create", "patch", "delete"))
    # The conditions that an object has are read before the first write.
    yield from _rules(dialect.condition_kinds, ("get",))
    yield from _rules(dialect.condition_kinds, ("patch",), "/status")
    yield from _declared(cell, operator=True)


def migration_rules(cell: DialectCell) -> Iterator[str]:
    """Yield what the operator needs to store objects anew that are stored in an old version."""
    kinds = versioned_kinds(_kinds(cell.dialect))
    if not kinds:
        return
    names = [f"{kind.plural}.{kind.group}" for kind in kinds]
    group = "apiextensions.k8s.io"
    yield _rule(group, ["customresourcedefinitions"], ("get",), names)
    yield _rule(group, ["customresourcedefinitions/status"], ("patch",), names)
    yield from _rules(kinds, ("list", "patch"))


def _declared(cell: DialectCell, *, operator: bool) -> Iterator[str]:
    for rule in cell.dialect.rbac:
        if rule.operator != operator:
            continue
        found = "".join(_rules(rule.kinds, rule.verbs))
        if rule.option is not None:
            found = f"{{{{- if (.{cell.name}).{rule.option} }}}}\n{found}{{{{- end }}}}\n"
        yield found


def _kinds(dialect: type[Dialect]) -> Kinds:
    return Kinds(dialect.kinds, dialect.cluster_kinds)


def _is_on(cell: DialectCell) -> str:
    enabled = f"(toString (.{cell.name}).enabled)"
    return f'ne {enabled} "false"' if cell.on_by_default else f'eq {enabled} "true"'


def _rules(kinds: Iterable[Kind[Any]], verbs: Sequence[str], of: str = "") -> Iterator[str]:
    """Yield a rule for each API group of the kinds; ``of`` is a subresource with its slash."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        if kind not in APART:
            groups.setdefault(kind.group, []).append(f"{kind.plural}{of}")
    for group, resources in sorted(groups.items()):
        yield _rule(group, sorted(resources), verbs)


def _rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> str:
    lines = [f"- apiGroups: [{group or EMPTY}]", "  resources:"]
    lines += [f"    - {resource}" for resource in resources]
    if names:
        lines += ["  resourceNames:", *(f"    - {name}" for name in names)]
    lines.append(f"  verbs: [{', '.join(verbs)}]")
    return "\n".join(lines) + "\n"
