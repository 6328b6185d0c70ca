"""Bidirectional Forwarding Detection: RFC 5880, 5881 (single hop) and 5883 (multihop).

A library of its own: it imports nothing of the rest of the speaker, and nothing of the rest imports it.

* `session_values`: states, diagnostics, settings, counters
* `packet`: the control packet, with the checks of a single packet
* `authentication`: keyed SHA1 and meticulous keyed SHA1
* `state_machine`: the transitions
* `neighbor`: what the last packet had of the other end
* `poll_sequence`: intervals that wait for the neighbor's confirmation
* `session`: one session, its state machine and its deadlines
* `recent`: the largest value of the last minutes
* `echo`: the echo function of a session
* `schedule`: the sessions by their deadlines
* `engine`: all sessions of a process; demultiplexing and deadlines

These are pure: packets, settings and the time come in, packets and state changes go out. Times are
integers in microseconds of one monotonic clock, as are intervals.

* `shell`: the loop of a process, on the sockets of `transport` and `echo_socket`, which `source_filter`
  protects
* `state_file`: what the next process needs to continue the sessions
"""
