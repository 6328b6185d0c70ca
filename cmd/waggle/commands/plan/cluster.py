"""The objects of a cluster before a change, and as they are after it: ``--from-cluster``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from reconcilers.compile_manifests import OfflineSettings
from reconcilers.dialect import Dialect
from reconcilers.plan_manifests import added
from resources.core.kinds import SECRET
from resources.kind import Kind, Kinds
from resources.manifests.applied import Identity, PresentObjects, without_absent
from resources.manifests.load import Loaded, load
from resources.meta import ObjectKey
from resources.source import Replace
from waggle.fleet.ask import cluster_of
from waggle.fleet.objects import objects_of, secrets_of
from waggle.manifest_flag import manifest_paths

MAX_NAMES = 3


class ClusterManifests(NamedTuple):
    """The manifests of a cluster before and after a change."""

    before: Loaded
    after: Loaded
    notes: list[str]
    """Sentences about unknown parts of the cluster."""


def read_both(
    args: argparse.Namespace,
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    kinds: Kinds,
) -> ClusterManifests:
    """Return both states. Raises `AgentError`, and as `load`."""
    present = PresentObjects(kinds)
    with cluster_of(args) as loop:
        cluster = objects_of(loop, dialects, settings)
        for value in cluster.objects:
            tuple(present.remember(value))
        change = load(manifest_paths(args), kinds, sys.stdin.buffer, present.apply)
        secrets, unread = secrets_of(
            loop, [cluster.loaded(kinds), change], dialects, settings, kinds
        )
    change = _without(change, SECRET, unread)
    kept = before = cluster.loaded(kinds, secrets)
    if args.prune:
        present_then = list(without_absent(cluster.objects, kinds, _identities(change)))
        kept = cluster._replace(objects=present_then).loaded(kinds, secrets)
    return ClusterManifests(before, added(kept, change), [*cluster.notes, *_notes(unread)])


def _without(loaded: Loaded, kind: Kind[Any], keys: Collection[ObjectKey]) -> Loaded:
    """Return manifests without these objects of a kind."""
    replacements = [
        (of, Replace(tuple(row for row in event.objects if row.key not in keys)))
        if of is kind
        else (of, event)
        for of, event in loaded.replacements
    ]
    return loaded._replace(replacements=replacements)


def _identities(loaded: Loaded) -> Iterator[Identity]:
    """Yield the objects of manifests, the invalid ones included."""
    for kind, event in loaded.replacements:
        for row in event.objects:
            yield kind.name, row.metadata.namespace, row.metadata.name
    for problem in loaded.problems:
        if (name := problem.object) is not None:
            yield name.kind, name.namespace, name.name


def _notes(unread: Sequence[ObjectKey]) -> Iterator[str]:
    if unread:
        shown = ", ".join("/".join(key) for key in unread[:MAX_NAMES])
        rest = f" and {len(unread) - MAX_NAMES} more" if len(unread) > MAX_NAMES else ""
        yield (
            f"not allowed to get the Secrets {shown}{rest}: whether a new password differs from the "
            "present one is not known"
        )
