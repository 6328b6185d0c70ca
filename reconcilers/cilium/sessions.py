"""What v1 and v2 say alike of a session: its families, its password, graceful restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from reconcilers.model import GracefulRestart, ObjectRef, Problem, SecretRef
from resources.cilium import peerconfig
from resources.core import Secret
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family

PASSWORD = "password"  # noqa: S105  the key within a Secret
FAMILIES = {("ipv4", "unicast"): IPV4_UNICAST, ("ipv6", "unicast"): IPV6_UNICAST}

T = TypeVar("T")


def families(
    ref: ObjectRef, path: str, wanted: Iterable[tuple[str, str, T]], problems: list[Problem]
) -> dict[Family, T]:
    """Keep the families that are spoken, each once, with what is told in it."""
    chosen: dict[Family, T] = {}
    for i, (afi, safi, told) in enumerate(wanted):
        family = FAMILIES.get((afi, safi))
        field = f"{path}[{i}]"
        if family is None:
            text = f"{afi}/{safi} is left out: only ipv4/unicast and ipv6/unicast are spoken"
            problems.append(Problem((ref,), field, text))
        elif family in chosen:
            text = f"{afi}/{safi} is there twice, the first one counts"
            problems.append(Problem((ref,), field, text))
        else:
            chosen[family] = told
    return chosen


def password(
    ref: ObjectRef,
    path: str,
    name: str | None,
    secrets: Mapping[str, Secret],
    namespace: str,
    problems: list[Problem],
) -> tuple[SecretRef | None, str | None]:
    """Find the Secret, and why the peer must stay down without it (never open without it)."""
    if name is None:
        return None, None
    where = SecretRef(namespace, name)
    secret = secrets.get(name)
    reason = None
    if secret is None:
        reason = f"no Secret {where.namespace}/{where.name}"
    elif not (PASSWORD in secret.data and secret.data[PASSWORD].reveal()):
        reason = f"no key {PASSWORD!r} in Secret {where.namespace}/{where.name}"
    if reason is not None:
        objects = (ref, ObjectRef("Secret", where.namespace, where.name))
        found = Problem(objects, path, f"{reason}; its peers stay down")
        if found not in problems:
            problems.append(found)
    return where, reason


def graceful_restart(given: peerconfig.GracefulRestart | None) -> GracefulRestart | None:
    """Take over graceful restart where it is on."""
    if given is None or not given.enabled:
        return None
    return GracefulRestart(given.restart_time_seconds)
