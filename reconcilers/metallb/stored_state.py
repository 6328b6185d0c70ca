"""The objects of the last good state over restarts of the agent, without passwords. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from reconcilers import dialect as api
from reconcilers.metallb.objects import Objects
from resources.errors import INVALID_JSON
from resources.secret_value import decode_withheld, encode_withheld


def encoded(objects: api.Objects) -> bytes:
    """Return MetalLB's objects as stored state, JSON by kind; of a password only that there is one."""
    of_kinds = Objects.of(objects.items())
    return msgspec.json.encode(tuple(of_kinds), enc_hook=encode_withheld)


def decoded(octets: bytes) -> api.Objects:
    """Return MetalLB's objects from the stored state of an earlier process. Raises ValueError."""
    shape: Any = Objects
    try:
        objects: Objects = msgspec.json.decode(octets, type=shape, dec_hook=decode_withheld)
    except INVALID_JSON as error:
        raise ValueError(f"it is not understood: {error}") from None
    return dict(objects.refs())


def _restored(_dialect: api.Dialect, octets: bytes) -> api.Outcome:
    return api.Outcome(last_good=decoded(octets))


STORED_STATE: Final = api.StoredState(lambda outcome: outcome.last_good, encoded, _restored)
"""In every mode, as the next process may have ``keep``."""
