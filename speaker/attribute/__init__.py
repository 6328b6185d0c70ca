"""Path attributes (RFC 4271 section 5 and its successors): values, decoding, encoding.

* `path_attributes`, `as_path`: the attributes of a route as frozen values
* `decode`: octets to values with RFC 7606's error handling; an error is an `AttributeFault`, a value
* `fast_path`: recognises the well-formed attribute fields of most routes without decoding them
* `encode`: values to octets, in ascending order of type

Attributes that are accepted without a fault are encoded to the same octets again.
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
    is_originated_in,
    occurrences,
    prepend,
)
from speaker.attribute.attribute_rules import is_wrong_first_as
from speaker.attribute.decode import (
    DecodedAttributes,
    RawAttribute,
    decode_attributes,
    frame_attributes,
)
from speaker.attribute.encode import encode_attribute, encode_attributes
from speaker.attribute.fast_path import AttributeFastPath
from speaker.attribute.path_attributes import (
    Aggregator,
    AttributeFault,
    ErrorHandling,
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
    "AttributeFastPath",
    "AttributeFault",
    "DecodedAttributes",
    "ErrorHandling",
    "PathAttributes",
    "RawAttribute",
    "Segment",
    "UnknownAttribute",
    "address_text",
    "as_path_text",
    "community_text",
    "decode_attributes",
    "encode_attribute",
    "encode_attributes",
    "frame_attributes",
    "hop_count",
    "is_originated_in",
    "is_wrong_first_as",
    "occurrences",
    "prepend",
]
