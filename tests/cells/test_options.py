"""The options of all cells: limits, and defaults as the documentation has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from cells.hive import Cell, HiveError, load
from cells.options import LARGEST_NUMBER_OF_ROUTES
from resources.option_spelling import Setting, describe
from waggle_agent.__main__ import CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
ROW = re.compile(r"^\| ([\w-]+) \| `(\w+)` \| `(--[\w-]+)`, `\w+` \|([^|]*)\|", re.MULTILINE)
SETTINGS = {
    setting.flag: setting
    for cell in (*CELLS, *OPERATOR_CELLS)
    for setting in describe(cell.name, cell.options)
}
LIMITS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "--advertise-min-length-ipv4": ((0, 32), (-1, 33)),
    "--advertise-min-length-ipv6": ((0, 128), (-1, 129)),
    "--advertise-namespace-limit": ((0,), (-1,)),
    "--advertise-peer-limit": ((0,), (-1,)),
    "--advertise-service-limit": ((0,), (-1,)),
    "--drain-prepend": ((0, 16), (-1, 17)),
    "--bfd-least-interval": ((1, 60000), (0, 60001)),
    "--fib-metric": ((1, 2**32 - 1), (0, 2**32)),
    "--fib-multipath": ((1, 256), (0, 257)),
    "--fib-protocol": ((5, 255), (4, 256)),
    "--fib-table": ((1, 2**32 - 1), (0, 2**32)),
    "--history-entries": ((0, 100_000), (-1, 100_001)),
    "--keep-received": ((0, 2**31 - 1), (-1, 2**31)),
    "--lease-duration-seconds": ((1,), (0,)),
    "--lease-retry-seconds": ((0.001,), (0,)),
    "--mass-withdraw-hold": ((0,), (-0.001,)),
    "--otlp-interval-seconds": ((0.001,), (0,)),
    "--otlp-sample-ratio": ((0, 1), (-0.001, 1.001)),
    "--ovnk-managed-bgp-asn": ((1, 4294967294), (0, 4294967295)),
    "--ready-timeout-seconds": ((0,), (-0.001,)),
    "--received-limit": ((0, 2**31 - 1), (-1, 2**31)),
    "--record-limit": ((1,), (0,)),
    "--renew-deadline-seconds": ((0.001,), (0,)),
    "--snapshot-after-seconds": ((0,), (-0.001,)),
    "--snapshot-max-age-hours": ((0.001,), (0,)),
    "--trace-buffer": ((1, 100_000), (0, 100_001)),
    "--verify-interval": ((0,), (-0.001,)),
}
"""Of each number: the least and largest values that are accepted, and those beyond."""


def test_every_number_has_a_limit() -> None:
    assert set(LIMITS) == {flag for flag, setting in SETTINGS.items() if setting.is_number} | {
        "--keep-received"  # or the word "all"
    }


@pytest.mark.parametrize("flag", LIMITS)
def test_a_number_beyond_its_limit_is_refused(flag: str) -> None:
    cell = SETTINGS[flag].cell
    cells = [one for one in (*CELLS, *OPERATOR_CELLS) if one.name == cell]
    chosen = [one for one in cells if flag in {s.flag for s in describe(cell, one.options)}][:1]
    accepted, refused = LIMITS[flag]
    for value in accepted:
        loaded = load(chosen, flags={flag: str(value)}).options[cell]
        assert getattr(loaded, SETTINGS[flag].field) == value
    for value in refused:
        with pytest.raises(HiveError, match=f"^{flag}: "):
            load(chosen, flags={flag: str(value)})


def test_a_number_of_routes_fits_the_counters_of_the_speaker() -> None:
    assert LARGEST_NUMBER_OF_ROUTES == 2**31 - 1


def spelled(setting: Setting) -> str:
    """Return the default as the page has it; empty if there is none."""
    default = setting.default
    if default is None or default == ():
        return ""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_the_defaults_are_documented() -> None:
    listed = {}
    for _, _, flag, default in ROW.findall(PAGE.read_text()):
        listed[flag] = default.strip(" `")
    found = {flag: spelled(setting) for flag, setting in SETTINGS.items()}
    assert set(listed) == set(found)
    for flag, default in found.items():
        # Of an option without a default the page may say in words what is used.
        if default:
            assert listed[flag].removesuffix(".0") == default.removesuffix(".0"), flag


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
def test_the_help_of_an_option_is_a_text(setting: Setting) -> None:
    assert len(setting.help.split()) > 2


@pytest.mark.parametrize("cells", [CELLS, OPERATOR_CELLS], ids=["agent", "operator"])
@pytest.mark.parametrize("feeder", ["metallb", "ovnk"])
def test_a_dialect_switches_on_what_it_feeds_unless_that_is_off_by_name(
    feeder: str, cells: Sequence[Cell]
) -> None:
    assert load(cells, file={"cells": {feeder: {"enabled": True}}}).enabled["frrk8s"]
    assert not load(cells).enabled["frrk8s"]
    with pytest.raises(HiveError, match=f"cell {feeder}: needs cell frrk8s, which is switched off"):
        load(cells, flags={"enable_cell": [feeder], "disable_cell": ["frrk8s"]})
