"""The rows of the kernel's tables and next hops: what shall be there, and what the writer confirmed.

And of the settings, with what is wrong as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.kernel.forwarding import Forwarding
from reconcilers.kernel.installed import InstalledRoutes
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reasons import Reason
from reconcilers.kernel.wanted_tables import FAMILIES, WantedTables
from reconcilers.kernel.withheld_routes import WithheldRoutes
from reconcilers.kernel_state import KernelNextHops, KernelSettings, KernelTable
from speaker.attribute import address_text


def table_rows(
    wanted: WantedTables, installed: InstalledRoutes, withheld: WithheldRoutes
) -> Iterator[KernelTable]:
    """Yield the state of each table of the kernel as a row of StateDB."""
    for table in dict.fromkeys((*wanted.tables, *installed.tables)):
        failed = {
            str(reason): number for reason, number in installed.failures.counts(table).items()
        }
        if number := len(withheld.routes(table)):
            failed[Reason.WITHHELD] = number
        yield KernelTable(
            table=table.table,
            family=str(FAMILIES[table.family]),
            metric=table.metric,
            instances=tuple(wanted.instances_of(table)),
            installed=installed.count(table),
            failed=tuple(sorted(failed.items())),
        )


def settings_row(
    options: FibOptions, wanted: WantedTables, installed: InstalledRoutes
) -> KernelSettings:
    """Return the settings of the kernel's routes as a row of StateDB."""
    problems = (installed.health,) if installed.health else ()
    return KernelSettings(
        protocol=options.protocol,
        multipath=options.multipath,
        multipath_relax=options.multipath_relax,
        problems=(*problems, *wanted.problems()),
    )


def next_hop_rows(wanted: WantedTables) -> Iterator[KernelNextHops]:
    """Yield the next hops in use as rows of StateDB, some of them several times."""
    return (_next_hops(instance, result) for instance, result in wanted.forwardings())


def _next_hops(instance: str, result: Forwarding) -> KernelNextHops:
    hops = (f"{address_text(hop.gateway)}%{hop.device}".rstrip("%") for hop in result.hops)
    problem = "" if result.why_not is None else result.why_not.message
    return KernelNextHops(instance=instance, next_hops=tuple(hops), problem=problem)
