"""State of a dialect over restarts of the agent, beside its objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcilers.dialect.extension import Extension


class StoredState(Extension, frozen=True):
    """A part of the state of a dialect (`NodeContext.state`) that is kept in a file.

    It has no password.
    """

    of_state: Callable[[Any], Any]
    """Returns the part of a state, or None: the same immutable value until it changes."""
    encode: Callable[[Any], bytes]
    """Encodes the part, in another thread."""
    restore: Callable[[Any, bytes], Any]
    """Returns the state of an encoded part, given the dialect. Raises ValueError."""
