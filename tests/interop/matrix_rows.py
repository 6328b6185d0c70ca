"""The decorator that makes a test the row of a feature in the interop matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop import matrix


def cell(feature: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test the row of a feature: once for every router that supports it."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        marked = pytest.mark.usefixtures("recorded_cell")(pytest.mark.cell(feature)(test))
        decorated: Callable[..., None] = pytest.mark.parametrize("kind", matrix.kinds(feature))(
            marked
        )
        return decorated

    return decorate
