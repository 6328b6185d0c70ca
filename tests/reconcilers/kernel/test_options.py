"""The options of the kernel's routes."""

from __future__ import annotations

import msgspec
import pytest

from reconcilers.kernel.options import FibOptions
from resources.option_declarations import InvalidOption


def test_by_default_routes_of_bgp_stand_in_the_main_table_behind_those_of_administrators() -> None:
    options = FibOptions()
    assert (options.fib, options.table, options.metric, options.protocol) == ("auto", 254, 20, 186)
    assert (options.multipath, options.multipath_relax) == (64, False)
    assert not options.blackhole
    assert not options.default_route
    assert options.keep


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
