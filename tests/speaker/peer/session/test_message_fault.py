"""The report of an internal error names the peer and the messages, without their octets."""

from __future__ import annotations

from speaker.peer.session.message_fault import message_fault


def test_a_fault_has_the_type_the_number_and_the_size_of_the_messages() -> None:
    fault = message_fault(("main", "tor-1"), 2, [b"secret", b"more"], KeyError("family"))
    assert (fault.instance, fault.peer) == ("main", "tor-1")
    assert fault.where == "handling messages of type 2: 2, of 10 octets"
    assert fault.error == "KeyError: 'family'"
