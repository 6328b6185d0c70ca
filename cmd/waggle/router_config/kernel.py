"""`kernel` of the router's file: received routes are installed in the kernel, and how."""

from __future__ import annotations

from typing import Annotated

import msgspec

from reconcilers.kernel.options import FibOptions
from resources.option_declarations import InvalidOption
from waggle.router_config.file_values import ConfigError, Value, key_of

Number = Annotated[int, msgspec.Meta(ge=1, le=0xFFFFFFFF)]


class Kernel(Value, frozen=True):
    """Settings; each has the name and the default of an option ``--fib-...`` of the agent."""

    table: Number = 254
    metric: Number = 20
    protocol: Annotated[int, msgspec.Meta(ge=5, le=255)] = 186
    multipath: Annotated[int, msgspec.Meta(ge=1, le=256)] = 64
    multipath_relax: bool = False
    blackhole: bool = False
    default_route: bool = False
    check: bool = True
    keep: bool = True
    socket: str | None = None

    def options(self) -> FibOptions:
        """Return the options. Raises `ConfigError`."""
        try:
            return FibOptions(fib=True, **msgspec.structs.asdict(self))
        except InvalidOption as error:
            key = key_of(error.flag.removeprefix("--fib-").replace("-", "_"))
            raise ConfigError(f"kernel.{key}: {error.message}") from None
