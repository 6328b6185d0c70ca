"""The whole way from manifests to intent in one go, without an agent: for `waggle render` and tests."""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.intent.round import IntentOptions, IntentRound
from reconcilers.render import Json, document
from reconcilers.tables import IntentTables
from resources.manifests import Loaded, load
from resources.tables import Tables
from statedb import Database


def intend(loaded: Loaded, options: IntentOptions) -> Json:
    """Compile what was read; the render document."""
    db = Database()
    resources, intent = Tables(db), IntentTables(db)
    for kind, event in loaded.replacements:
        table = resources.of(kind)
        with db.write(table) as txn:
            for row in event.objects:
                table.upsert(txn, row)
    with db.write(resources.source_problems) as txn:
        for problem in loaded.problems:
            resources.source_problems.upsert(txn, problem)
    IntentRound(db, resources, intent, options).run()
    return document(db.snapshot(), options.node, resources, intent)


def render(paths: Iterable[str], options: IntentOptions) -> Json:
    """Read manifests and compile them. Raises `resources.manifests.UnreadablePathError`."""
    return intend(load(paths), options)
