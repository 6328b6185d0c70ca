"""Generates the deployment files that are derived from the code and from the chart's values.

* the chart's CustomResourceDefinitions, one file for each API dialect, from the types that read the
  objects
* the rules of the chart's ClusterRoles (``templates/_dialects.tpl``), from what the dialects declare
* the chart's ``values.schema.json`` and the table of values in its README, from ``values.yaml``, its
  comments, and the options that the cells declare
* the chart's ``rules/waggle.yaml`` (alerts), and the dashboards, in ``grafana/`` and in the chart
* ``manifests/waggle.yaml``, rendered by helm from the chart (with ``--helm PROGRAM``)
* ``manifests/waggle-metallb.yaml``: ``metallb/controller.yaml``, and the chart with its API dialects

``make manifests`` runs it, and a test compares the committed files with the result.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from cells.dialects.cell import DialectCell
from cells.hive import Cell
from deploy import alerts, rbac
from deploy.grafana.generate import dashboards
from reconcilers.dialect import Dialect
from resources.crds.generate import custom_resource_definition, defined
from resources.option_spelling import Setting, describe
from waggle.commands import crds
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

HERE: Final = Path(__file__).parent
CHART: Final = HERE / "helm" / "waggle"
MANIFESTS: Final = HERE / "manifests" / "waggle.yaml"
WITH_METALLB: Final = HERE / "manifests" / "waggle-metallb.yaml"
CONTROLLER: Final = HERE / "metallb" / "controller.yaml"
NAMESPACE: Final = "waggle-system"
"""The namespace of the plain manifests."""
KUBE_VERSION: Final = "1.34.0"
"""The Kubernetes version for rendering; the default of a helm built from its module is an old one."""

Schema = dict[str, Any]

BY_CHART: Final = frozenset(
    {
        "api.socket",
        "bfd.bfd",
        "bfd.directory",
        "bfd.leastInterval",
        "bfd.socket",
        "cilium.routerIdAllocationIpPool",
        "claims.directory",
        "http.address",
        "intent.advertiseAllow",
        "intent.advertiseNamespaces",
        "intent.advertisePermit",
        "intent.serviceCidr",
        "kernel.fib",
        "kernel.socket",
        "kubernetes.context",
        "kubernetes.kubeconfig",
        "manifests.directory",
        "node.clusterAddresses",
        "node.name",
        "node.podName",
        "node.podNamespace",
        "node.podUid",
        "operator.deployment",
        "operator.identity",
        "operator.leaseNamespace",
        "resources.secretsNamespace",
        "snapshot.file",
        "webhook.address",
        "webhook.configuration",
        "webhook.names",
        "webhook.storedIn",
    }
)
"""Options that the chart itself sets, from other values or to a constant."""

_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_OBJECT: Final[Schema] = {"type": "object"}
_OBJECTS: Final[Schema] = {"type": "array", "items": _OBJECT}
_OCTET: Final = r"(25[0-5]|2[0-4]\d|1?\d?\d)"
_PREFIX4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}/(3[0-2]|[12]?\d)"
_PREFIX6: Final = r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*/(12[0-8]|1[01]\d|[1-9]?\d)"
_BY_METAVAR: Final[Mapping[str, str]] = {
    "CIDR": rf"^({_PREFIX4}|{_PREFIX6}|{_OCTET}(\.{_OCTET}){{3}}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)$",
    "URL": r"^https?://[^\s/?#]+(/\S*)?$",
}
"""The pattern of an option's text, by the metavariable that the help shows."""
_CIDRS: Final[Schema] = {
    "type": "array",
    "items": {"type": "string", "pattern": rf"^({_PREFIX4}|{_PREFIX6})$"},
}
_NAME: Final[Schema] = {"type": "string", "pattern": r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"}
_PORT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 65535}
_SECONDS: Final[Schema] = {"type": "integer", "minimum": 1}
_HOST: Final[Schema] = {"type": "string", "pattern": r"^([0-9.]+|\[[0-9a-fA-F:.]+\])$"}

_BY_KEY: Final[Mapping[str, Schema]] = {
    "affinity": _OBJECT,
    "annotations": _TEXTS,
    "dnsPolicy": {"enum": ["ClusterFirst", "ClusterFirstWithHostNet", "Default"]},
    "extraEnv": _OBJECTS,
    "extraObjects": _OBJECTS,
    "failureThreshold": _SECONDS,
    "periodSeconds": _SECONDS,
    "timeoutSeconds": _SECONDS,
    "extraVolumeMounts": _OBJECTS,
    "extraVolumes": _OBJECTS,
    "labels": _TEXTS,
    "nodeSelector": _TEXTS,
    "podAnnotations": _TEXTS,
    "podLabels": _TEXTS,
    "resources": _OBJECT,
    "startSeconds": _SECONDS,
    "terminationGracePeriodSeconds": _SECONDS,
    "tolerations": _OBJECTS,
    "updateStrategy": _OBJECT,
}
"""The schema of a value, by the last part of its path."""

_BY_PATH: Final[Mapping[str, Schema]] = {
    "agent.capabilities": {
        "type": "array",
        "items": {"enum": ["NET_ADMIN", "NET_BIND_SERVICE"]},
        "uniqueItems": True,
    },
    "agent.http.host": _HOST,
    "agent.http.port": _PORT,
    "agent.serviceAccount.name": _NAME,
    "agent.snapshot.hostPath": {"type": "string", "pattern": "^(/.*)?$"},
    "apiServer.port": _PORT,
    "commonLabels": _TEXTS,
    "image.digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    "agent.bfd.hostPath": {"type": "string", "pattern": "^/.+$"},
    "agent.bfd.image": {"type": "string"},
    "agent.bfd.leastInterval": {"type": "number", "minimum": 1, "maximum": 60000},
    "agent.kernelRoutes.enabled": {"enum": ["auto", True, False]},
    "agent.kernelRoutes.fib": {"enum": ["auto", True, False]},
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "image.repository": {"type": "string", "minLength": 1},
    "image.tag": {"type": "string", "pattern": r"^([A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$"},
    "imagePullSecrets": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": _NAME},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
    "metrics.annotations": {"type": "boolean"},
    "metrics.dashboards.namespace": _NAME,
    "metrics.prometheusRule.disabled": {
        "type": "array",
        "items": {"enum": [alert.name for alert in alerts.ALERTS]},
    },
    "metrics.serviceMonitor.interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
    "networkPolicy.from": _OBJECTS,
    "operator.http.host": _HOST,
    "operator.http.port": _PORT,
    "operator.replicas": {"type": "integer", "minimum": 1},
    "operator.serviceAccount.name": _NAME,
    "operator.webhook.failurePolicy": {"enum": ["Fail", "Ignore"]},
    "operator.webhook.host": _HOST,
    "operator.webhook.port": _PORT,
    "operator.webhook.timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 30},
    "routerIdAllocationIpPool": {
        "type": "string",
        "pattern": rf"^({_PREFIX4})?$",
    },
    "serviceAddresses.allow": _CIDRS,
    "serviceAddresses.namespaces": {"enum": ["any", "annotated"]},
    "serviceAddresses.permit": _CIDRS,
    "serviceAddresses.serviceCidr": _CIDRS,
    "secrets.names": {"type": "array", "items": _NAME},
    "secrets.ofDialects": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": _NAME},
    },
    "secrets.namespace": _NAME,
}
"""The schema of one value, by its path."""


def files(helm: str | None) -> dict[Path, str]:
    """Return all generated files by path; the plain manifests only with a helm."""
    values_text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(values_text)
    described = dict(descriptions(values_text))
    schema = json.dumps(values_schema(values, described), indent=2) + "\n"
    cells = [cell for cell in AGENT_CELLS if isinstance(cell, DialectCell)]
    generated = {
        **{CHART / "crds" / f"{cell.name}.yaml": definitions(cell.dialect) for cell in cells},
        CHART / "templates" / "_dialects.tpl": rbac.template(cells),
        CHART / "values.schema.json": schema,
        CHART / "README.md": readme(values, described),
        CHART / "rules" / "waggle.yaml": alerts.rules(),
    }
    for name, board in dashboards().items():
        # A chart has the files below its folder only.
        for folder in (HERE / "grafana", CHART / "dashboards"):
            generated[folder / f"{name}.json"] = board
    if helm is not None:
        generated[MANIFESTS] = manifests(helm)
        values = ("cells.cilium.enabled=false", "cells.metallb.enabled=true")
        head, _, objects = manifests(helm, *values, "namespace.ofDialects=false").partition("\n")
        # The namespaces are among MetalLB's objects, which come first.
        generated[WITH_METALLB] = f"{head}\n---\n{CONTROLLER.read_text()}{objects}"
    return generated


def definitions(dialect: type[Dialect]) -> str:
    """Return the CustomResourceDefinitions of a dialect, in the format of `waggle crds`."""
    kinds = defined(dialect.all_kinds())
    return crds.as_yaml([custom_resource_definition(kind) for kind in kinds])


def manifests(helm: str, *values: str) -> str:
    """Render the chart with its default values, and others as ``KEY=VALUE``."""
    command = [
        helm,
        "template",
        "waggle",
        str(CHART),
        f"--namespace={NAMESPACE}",
        f"--kube-version={KUBE_VERSION}",
        "--set=namespace.create=true",
        "--skip-tests",
        *(f"--set={value}" for value in values),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    head = "# Rendered from deploy/helm/waggle by `make manifests`. Do not edit.\n"
    return head + done.stdout


# Values


def descriptions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the comment (``# -- ...``) of each value that has one."""
    stack: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# -- "):
            comment = [stripped.removeprefix("# -- ")]
        elif stripped.startswith("#"):
            comment = [*comment, stripped.removeprefix("# ")] if comment else []
        elif match := re.match(r"( *)([A-Za-z]+):", line):
            indent = len(match[1])
            stack = [*(part for part in stack if part[0] < indent), (indent, match[2])]
            if comment:
                yield ".".join(name for _, name in stack), " ".join(comment)
            comment = []


def values_schema(values: Mapping[str, Any], described: Mapping[str, str]) -> Schema:
    """Return the JSON schema of the values."""
    schema = _schema_of(values, "", described)
    # A parent chart passes its global values.
    schema["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "waggle", **schema}


def _schema_of(value: object, path: str, described: Mapping[str, str]) -> Schema:
    schema = _schema_without_description(value, path, described)
    if path in described:
        return {"description": described[path], **schema}
    return schema


def _schema_without_description(value: object, path: str, described: Mapping[str, str]) -> Schema:
    key = path.rpartition(".")[2]
    if key == "cells":
        return _cells_schema(path.partition(".")[0])
    if path in _BY_PATH:
        return _BY_PATH[path]
    if key in _BY_KEY:
        return _BY_KEY[key]
    match value:
        case bool():
            return {"type": "boolean"}
        case str():
            return _TEXT
        case dict():
            prefix = f"{path}." if path else ""
            properties = {
                name: _schema_of(inner, prefix + name, described) for name, inner in value.items()
            }
            return {"type": "object", "properties": properties, "additionalProperties": False}
        case _:
            raise TypeError(f"{path}: generate.py has no schema for this value")


def _cells_schema(owner: str) -> Schema:
    """Return the schema of the options of a program, or of the options of both programs."""
    programs: dict[str, Sequence[Cell]] = {"agent": AGENT_CELLS, "operator": OPERATOR_CELLS}
    own = {name: _options(cells) for name, cells in programs.items()}
    cells = own.get(owner)
    if cells is None:
        both = {name: own["agent"][name] for name in own["agent"] if name in own["operator"]}
        cells = {
            name: {key: item for key, item in items.items() if key in own["operator"][name]}
            for name, items in both.items()
        }
    dialects = {cell.name for cell in AGENT_CELLS if isinstance(cell, DialectCell)}
    properties: Schema = {}
    for name, items in cells.items():
        free = {key: item for key, item in items.items() if f"{name}.{key}" not in BY_CHART}
        keys: Schema = {key: _option_schema(item) for key, item in free.items()}
        if len(free) == len(items) or name in dialects:
            # A cell that the chart configures cannot be disabled, unless it is an API dialect.
            keys["enabled"] = {"type": "boolean", "description": "Whether the cell is on."}
        if keys:
            properties[name] = {"type": "object", "properties": keys, "additionalProperties": False}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _option_schema(item: Setting) -> Schema:
    """Return the schema of an option, its texts with the pattern that the program checks."""
    pattern = _BY_METAVAR.get(item.metavar or "")

    def with_pattern(schema: Any) -> Any:  # noqa: ANN401  JSON
        if isinstance(schema, list):
            return [with_pattern(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        parts = {key: with_pattern(part) for key, part in schema.items()}
        return {**parts, "pattern": pattern} if parts.get("type") == "string" else parts

    schema: Schema = msgspec.json.schema(item.type)
    return schema if pattern is None else dict(with_pattern(schema))


def _options(cells: Sequence[Cell]) -> dict[str, dict[str, Setting]]:
    return {cell.name: {s.key: s for s in describe(cell.name, cell.options)} for cell in cells}


# The README


def readme(values: Mapping[str, Any], described: Mapping[str, str]) -> str:
    """Return the chart's README: the table of its values."""
    rows = [
        f"| `{path}` | `{json.dumps(value)}` | {described[path]} |"
        for path, value in _leaves(values, "", described)
    ]
    return "\n".join(
        (
            "# The chart",
            "",
            (
                "Generated from values.yaml by `make manifests`. To install the chart, see "
                "[docs/install.md](../../../docs/install.md)."
            ),
            "",
            "| value | default | |",
            "| --- | --- | --- |",
            *rows,
            "",
        )
    )


def _leaves(
    value: Mapping[str, Any], path: str, described: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        here = f"{path}.{name}" if path else name
        if here in described and not (isinstance(inner, dict) and name == "cells" and inner):
            yield here, inner
        elif isinstance(inner, dict):
            yield from _leaves(inner, here, described)
        else:
            raise TypeError(f"{here}: values.yaml has no description of this value")


def main() -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m deploy.generate", description=__doc__)
    parser.add_argument("--helm", metavar="PROGRAM", help="also render the plain manifests")
    helm = parser.parse_args().helm
    # Helm checks values against the schema, so that comes first.
    for program in (None, helm):
        for path, text in files(program).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
