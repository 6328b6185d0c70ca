"""The objects of the last good state over restarts of the agent, without passwords. Pure."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import msgspec

from reconcilers.metallb.objects import Objects
from resources.secret_value import decode_withheld, encode_withheld


class RememberedObjects(NamedTuple):
    """Objects as `reconcilers.dialect.Memory`."""

    objects: Objects

    def is_of(self, objects: Objects) -> bool:
        """True if these are the same rows."""
        return all(
            len(own) == len(others) and all(map(operator.is_, own, others))
            for own, others in zip(self.objects, objects, strict=True)
        )

    def encode(self) -> bytes:
        """Return the objects as JSON, kind by kind; of a password only that there is one."""
        return msgspec.json.encode(tuple(self.objects), enc_hook=encode_withheld)


def remembered_objects(octets: bytes) -> Objects:
    """Return the objects of an earlier process. Raises ValueError."""
    shape: Any = Objects
    try:
        found: Objects = msgspec.json.decode(octets, type=shape, dec_hook=decode_withheld)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not understood: {error}") from None
    return found
