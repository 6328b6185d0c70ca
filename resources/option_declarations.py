"""Declaration of options: a frozen struct whose fields carry type, default and help text.

An option declaration is plain data; any room may declare options. One declaration gives the flag, the
environment variable and the key of the configuration file::

    class HttpOptions(Options, frozen=True):
        address: Annotated[str | None, setting("where to listen", flag="--http-address")] = None

is ``--http-address``, ``WAGGLE_HTTP_ADDRESS`` and, in the file, ``cells: {http: {address: ...}}``.
Without ``flag`` the flag consists of the names of cell and field (``--http-address``). The spelling
is in `resources.option_spelling`, the reading of the three sources in `cells.hive.option_loading`.
"""

from __future__ import annotations

import msgspec


class InvalidOption(ValueError):  # noqa: N818  the name is the condition
    """The value of an option is of the right type and breaks a rule; ``flag`` names the option."""

    def __init__(self, flag: str, message: str) -> None:
        super().__init__(f"{flag}: {message}")
        self.flag = flag
        self.message = message


class Options(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every declaration; without fields it declares no option."""


def setting(help: str, *, flag: str | None = None, metavar: str | None = None) -> msgspec.Meta:  # noqa: A002
    """Declare an option: a field of `Options` with its help text, and optionally its flag's name."""
    return msgspec.Meta(description=help, extra={"flag": flag, "metavar": metavar})
