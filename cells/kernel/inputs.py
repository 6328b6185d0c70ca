"""The inputs of the kernel's routes, in the local API: for `waggle plan`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from cells.api.resource import ApiResource
from cells.intent.installing_dialects import InstallingDialects
from reconcilers.intent_tables import IntentTables, Json
from reconcilers.kernel.options import FibOptions
from resources.tables import Tables
from statedb import Database

SLICE_ITEMS: Final = 100


def kernel_inputs_resource(
    database: Database,
    tables: Tables,
    intent: IntentTables,
    installing: InstallingDialects,
    options: FibOptions,
) -> ApiResource:
    """Return the instances and peers of the node, its interfaces, and the options."""

    def read(_: object) -> Iterator[Sequence[Json]]:
        # For `waggle plan` alone: no start waits for its import.
        from reconcilers.plan.kernel_inputs import KernelInputs

        snapshot = database.snapshot()
        inputs = KernelInputs(
            options=options,
            installing=tuple(sorted(installing.dialects)),
            host=next(tables.host.all(snapshot), None),
            instances=tuple(intent.instances.all(snapshot)),
            peers=tuple(intent.peers.all(snapshot)),
        )
        items = inputs.items()
        while some := list(islice(items, SLICE_ITEMS)):
            yield some

    return ApiResource(path="/v1/kernel-inputs", kind="KernelInputList", read=read)
