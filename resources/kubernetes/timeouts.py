"""Timeouts, retry pauses and page size of the feeds."""

from __future__ import annotations

import msgspec


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long a feed waits, and how much it requests at once; durations in seconds."""

    page_size: int = 500
    """Objects in a page of a list (the request's ``limit``)."""
    connect: float = 5.0
    """For a connection to the API server."""
    list_silence: float = 60.0
    """Longest silence within the response to a list."""
    watch_silence: float = 90.0
    """Longest silence of a watch: the API server sends a bookmark about once a minute."""
    watch_shortest: float = 300.0
    watch_longest: float = 600.0
    """A watch requests a random ``timeoutSeconds`` between them, so that load moves between servers."""
    stable_watch: float = 5.0
    """A watch that lasts this long resets the backoff."""
    first_retry: float = 0.5
    longest_retry: float = 30.0
    """Bounds of the pause between two attempts in a small cluster (`Recovery`)."""
    count_nodes: float = 600.0
    """Pause between two requests for the number of nodes; the bounds grow with it."""
    longest_retry_after: float = 300.0
    """Limit of a Retry-After of the API server."""
    confirm_list: float = 1.0
    """Pause before a doubtful list is requested again; it doubles up to `longest_retry`."""
    mass_withdraw_hold: float = 60.0
    """How long lists have to confirm that many objects are missing; 0: not at all."""
    recheck_list: float = 180.0
    """Pause between the lists after a mass of objects was deleted, as a cold API server fills later."""
    rechecks: int = 10
    """Number of these lists."""
    missing_kind: float = 30.0
    """Pause before a kind that the API server does not have is looked for again; it doubles."""
    longest_missing: float = 300.0
    """Limit of this pause. All kinds that are missing are looked for together."""
    forbidden_grace: float = 30.0
    """How long a forbidden list delays readiness; a role may be created after its binding's user."""
    failing_grace: float = 180.0
    """How long lists of a kind delay its dialect while they alone fail (a conversion webhook that is
    down): longer than the 120 s for which peers usually keep the routes of a restart."""
