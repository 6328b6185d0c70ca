"""The log level that FRRK8sConfigurations set for the programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import LogLevel, LogLevelObject
from reconcilers.model import Problem, ref_to
from resources.frrk8s.frrk8sconfiguration import NAME, FRRK8sConfiguration
from resources.frrk8s.kinds import FRRK8S_CONFIGURATION
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect

LEVELS: Final[Mapping[str, LogLevel]] = MappingProxyType(
    {
        "all": "debug",
        "debug": "debug",
        "info": "info",
        "warn": "warning",
        "error": "error",
        "none": "none",
    }
)
"""FRR-k8s's levels as ours."""


def log_level(dialect: Frrk8sDialect, snapshot: Snapshot) -> LogLevel | None:
    """Return the log level that the FRRK8sConfiguration ``config`` sets, or None."""
    table = dialect.tables.of(FRRK8S_CONFIGURATION)
    row = table.get(snapshot, (dialect.options.namespace, NAME))
    return None if row is None or row.spec.log_level is None else LEVELS[row.spec.log_level]


LOG_LEVEL: Final = LogLevelObject(FRRK8S_CONFIGURATION, log_level)


def ineffective(rows: Iterable[FRRK8sConfiguration], namespace: str) -> Iterator[Problem]:
    """Yield a problem for each FRRK8sConfiguration whose log level has no effect."""
    text = f"only the object {NAME} in namespace {namespace} is used"
    for row in rows:
        if row.key != (namespace, NAME):
            ref = ref_to(FRRK8S_CONFIGURATION, row)
            yield Problem((ref,), "metadata", text, category="unsupported")
