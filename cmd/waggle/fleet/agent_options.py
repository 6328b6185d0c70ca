"""The options of a cluster's agents, as far as they are in the ConfigMap of the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from cells.api.transport import AgentError
from reconcilers.bfd.options import BfdOptions
from reconcilers.compile_manifests import OfflineSettings
from reconcilers.dialect import Dialect
from reconcilers.intent.options import IntentOptions
from reconcilers.kernel.options import FibOptions
from resources.kubernetes import Connection
from resources.option_declarations import InvalidOption, Options
from resources.option_spelling import describe
from waggle.fleet.agents import SELECTOR, read_objects

KEY: Final = "config.yaml"
DEFAULTS: Final = "the default options"

T = TypeVar("T", bound=Options)


class AgentOptions(NamedTuple):
    """The options with which the intent of nodes is compiled."""

    settings: OfflineSettings
    off: frozenset[str]
    """The cells, dialects among them, that are off."""
    source: str
    """The ConfigMap, or the reason for defaults."""

    def of_agents(self, dialects: Sequence[type[Dialect]]) -> list[type[Dialect]]:
        """Return the dialects that are on."""
        return [dialect for dialect in dialects if dialect.name not in self.off]


async def read_agent_options(
    connection: Connection, namespace: str, dialects: Sequence[type[Dialect]]
) -> AgentOptions:
    """Return the options of the agents of a namespace; defaults where they cannot be read."""
    path, selector = f"/api/v1/namespaces/{namespace}/configmaps", [("labelSelector", SELECTOR)]
    try:
        listed = await read_objects(connection, path, selector)
    except AgentError as error:
        return options_of({}, dialects, f"{DEFAULTS} ({error})")
    texts = [(value["metadata"]["name"], value.get("data", {}).get(KEY)) for value in listed]
    name, text = next(((n, t) for n, t in sorted(texts) if t is not None), ("", None))
    if text is None:
        return options_of({}, dialects, f"{DEFAULTS} (no ConfigMap of agents in {namespace})")
    source = f"ConfigMap/{namespace}/{name}"
    try:
        return options_of(_cells(text), dialects, f"the options of {source}")
    except (ValueError, InvalidOption) as error:
        return options_of({}, dialects, f"{DEFAULTS} ({source}: {error})")


def options_of(
    cells: Mapping[str, Mapping[str, Any]], dialects: Sequence[type[Dialect]], source: str
) -> AgentOptions:
    """Return the options in the sections of cells. Raises ValueError, `InvalidOption`."""

    def given(cell: str, options: type[T]) -> T:
        section = cells.get(cell) or {}
        values = {
            item.field: msgspec.convert(section[item.key], item.type)
            for item in describe(cell, options)
            if item.key in section
        }
        return options(**values)

    namespace = (cells.get("resources") or {}).get("secretsNamespace")
    settings = OfflineSettings(
        node="",
        intent=given("intent", IntentOptions),
        dialects={dialect.name: given(dialect.name, dialect.options_type) for dialect in dialects},
        fib=given("kernel", FibOptions),
        bfd=given("bfd", BfdOptions).bfd,
    )
    if namespace is not None:
        settings = msgspec.structs.replace(settings, secrets_namespace=str(namespace))
    off = {name for name, section in cells.items() if section and section.get("enabled") is False}
    return AgentOptions(settings, frozenset(off), source)


def _cells(text: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the sections of a configuration file. Raises ValueError."""
    import yaml

    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{KEY} is not YAML") from error
    cells = (content or {}).get("cells") or {} if isinstance(content, dict | None) else None
    if not isinstance(cells, dict) or not all(isinstance(s, dict | None) for s in cells.values()):
        raise ValueError(f"{KEY} is not a mapping of cells")
    return cells
