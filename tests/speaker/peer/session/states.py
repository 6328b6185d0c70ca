"""A session in a state, for sending octets to it."""

from __future__ import annotations

from tests.speaker.raw import Raw

STATES = ("open_sent", "open_confirm", "established")


def at(state: str, **options: object) -> Raw:
    """Return a session in a state."""
    raw = Raw(**options)
    getattr(raw, f"to_{state}")()
    assert (
        raw.state
        == {
            "open_sent": "OpenSent",
            "open_confirm": "OpenConfirm",
            "established": "Established",
        }[state]
    )
    return raw
