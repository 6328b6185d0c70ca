"""What the chart's roles permit a program: each verb on each resource, with every dialect on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from aiohttp import web

from cells.dialects.cell import DialectCell
from deploy import rbac
from deploy.generate import CHART
from reconcilers.dialect import WrittenObjects
from tests.cells.faults.permissions.programs import FORBIDDEN
from tests.support import plain_yaml
from tests.support.apiserver import Answer, ApiServer

Permission = tuple[str, str]
"""A verb, and a resource with its subresource. ``read`` is to list and to watch."""


def permissions(part: str, cells: Sequence[Any]) -> set[Permission]:
    """Return what the roles of ``agent`` or ``operator`` permit, wherever and under whatever name.

    Without those for Secrets and for the configuration of the webhook, which other templates have.
    """
    rules = _rules((CHART / "templates" / f"{part}-rbac.yaml").read_text())
    for cell in cells:
        if isinstance(cell, DialectCell):
            rules += _rules("rules:\n" + "".join(_of_dialect(part, cell)))
    permitted = {
        (verb, resource)
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    if part == "agent":
        written = [
            kind.kind.plural
            for cell in cells
            if isinstance(cell, DialectCell)
            for own in cell.dialect.each(WrittenObjects)
            for kind in own.kinds
        ]
        permitted |= {(verb, plural) for plural in written for verb in rbac.OBJECT_VERBS}
        permitted |= {("patch", f"{plural}/status") for plural in written}
    watched = {resource for verb, resource in permitted if verb == "watch"}
    reads = {(verb, resource) for verb in rbac.READ for resource in watched}
    return permitted - reads | {("read", resource) for resource in watched}


def _of_dialect(part: str, cell: DialectCell) -> Iterable[str]:
    if part == "agent":
        return (*rbac.agent_rules(cell), *rbac.report_rules(cell))
    return (*rbac.operator_rules(cell), *rbac.migration_rules(cell), *rbac.leftover_rules(cell))


def _rules(text: str) -> list[dict[str, Any]]:
    """Return the rules of the roles of a template that name their API group."""
    plain = "\n".join(
        re.sub(r"\{\{.*?\}\}", "x", line)
        for line in text.splitlines()
        if not re.fullmatch(r"\s*(- )?\{\{.*\}\}\s*", line)
    )
    return [
        rule
        for document in plain_yaml.load_all(plain)
        for rule in (document or {}).get("rules") or []
        if rule["apiGroups"] != "x"
    ]


def forbid(server: ApiServer, permission: Permission) -> None:
    """Answer 403 to the requests that need a permission; apply creates what is not there."""
    verb, resource = permission
    plural, _, subresource = resource.partition("/")

    async def answer(request: web.Request) -> web.StreamResponse:
        is_status = request.path.endswith("/status")
        name = request.path.rpartition("/")[2]
        exists = any(key[1] == name for key in server.objects.get(plural, {}))
        needed = "patch" if is_status or exists or plural == "events" else "create"
        refused = verb == needed and is_status == bool(subresource)
        return await (FORBIDDEN if refused else server.usual)(request)

    _answer(server, verb, plural, FORBIDDEN)
    if verb in ("create", "patch"):
        server.always("patch", plural, answer)


def permit(server: ApiServer, permission: Permission) -> None:
    """Answer as usual again."""
    verb, resource = permission
    plural = resource.partition("/")[0]
    _answer(server, verb, plural, None)
    if verb == "create":
        server.always("patch", plural, None)


def _answer(server: ApiServer, verb: str, plural: str, answer: Answer | None) -> None:
    for one in rbac.READ if verb == "read" else (verb,):
        server.always(one, plural, answer)


def is_used(server: ApiServer, permission: Permission, since: int = 0) -> bool:
    """Return whether a request needed a permission, in ``server.paths`` from a place on."""
    verb, resource = permission
    plural, _, subresource = resource.partition("/")
    verbs = {"read": ("watch", "list"), "create": ("create", "patch")}.get(verb, (verb,))
    return any(
        method in verbs
        and plural in path.split("/")
        and path.endswith("/status") == bool(subresource)
        for method, path in server.paths[since:]
    )
