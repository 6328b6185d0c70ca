"""The options of the kernel's routes."""

from __future__ import annotations

import msgspec
import pytest

from reconcilers.kernel.options import Fib, FibOptions
from resources.option_declarations import InvalidOption


def test_by_default_bgp_routes_are_in_the_main_table_after_administrators_routes() -> None:
    options = FibOptions()
    assert (options.fib, options.table, options.metric, options.protocol) == (None, 254, 20, 186)
    assert (options.multipath, options.multipath_relax) == (64, False)
    assert not options.blackhole
    assert not options.default_route
    assert options.keep


@pytest.mark.parametrize(
    ("fib", "for_that", "others"),
    [(None, True, False), ("auto", True, False), (True, True, True), (False, False, False)],
)
def test_routes_are_installed_of_dialects_that_are_for_that_or_of_all(
    fib: Fib, for_that: object, others: object
) -> None:
    options = FibOptions(fib=fib)
    assert options.installs(for_that=True) is for_that
    assert options.installs(for_that=False) is others


def test_the_table_of_local_addresses_is_the_kernels() -> None:
    with pytest.raises(InvalidOption, match="--fib-table: 255 is the kernel's"):
        FibOptions(table=255)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("table", 0),
        ("table", 2**32),
        ("metric", 0),
        ("protocol", 2),
        ("protocol", 256),
        ("multipath", 0),
        ("multipath", 257),
        ("fib", "on"),
    ],
)
def test_values_that_the_kernel_does_not_take_are_refused(field: str, value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({field: value}, FibOptions)
