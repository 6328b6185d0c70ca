"""Path attributes (RFC 4271 section 5 and its successors): values, reading, writing.

Reading follows RFC 7606: an error is a `Fault` with its outcome, not an exception. What is accepted
is written again as the same octets, in ascending order of type.
"""

from speaker.attribute.as_path import (
    AS_CONFED_SEQUENCE,
    AS_CONFED_SET,
    AS_SEQUENCE,
    AS_SET,
    AsPath,
    Segment,
    as_path_text,
    hop_count,
    prepend,
)
from speaker.attribute.decode import Block, Raw, decode_attributes, frame
from speaker.attribute.encode import attribute, encode_attributes
from speaker.attribute.usual import Recognizer
from speaker.attribute.values import (
    Aggregator,
    Fault,
    Outcome,
    PathAttributes,
    UnknownAttribute,
    address_text,
    community_text,
)

__all__ = [
    "AS_CONFED_SEQUENCE",
    "AS_CONFED_SET",
    "AS_SEQUENCE",
    "AS_SET",
    "Aggregator",
    "AsPath",
    "Block",
    "Fault",
    "Outcome",
    "PathAttributes",
    "Raw",
    "Recognizer",
    "Segment",
    "UnknownAttribute",
    "address_text",
    "as_path_text",
    "attribute",
    "community_text",
    "decode_attributes",
    "encode_attributes",
    "frame",
    "hop_count",
    "prepend",
]
