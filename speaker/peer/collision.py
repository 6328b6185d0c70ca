"""Selects the surviving one of two connections to a peer (RFC 4271 section 6.8, RFC 6286 section 2.3).

Pure: both ends compute the same result from the same four numbers.
"""

from __future__ import annotations


def keep_outgoing(local_id: int, local_asn: int, remote_id: int, remote_asn: int) -> bool:
    """Return whether the connection that the local side initiated is kept.

    The speaker with the higher BGP Identifier wins; with equal identifiers, which RFC 6286 permits
    between different ASes, that of the higher AS number.
    """
    return (local_id, local_asn) > (remote_id, remote_asn)
