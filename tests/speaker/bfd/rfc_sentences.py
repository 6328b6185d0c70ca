"""Each sentence with MUST, MUST NOT, SHALL or REQUIRED of the RFCs of BFD, and the tests that hold it.

By section, in the order of the text: a few words of our own for what the sentence is about, and then
the tests, or the reason why none is needed. A sentence that this program does not follow is a row of
the deviations of docs/rfcs.md (`DEVIATES`), whether tests hold what it does instead or not.

RFC 9384 has no such sentence: its three with SHOULD stand here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias


class Reason(NamedTuple):
    """Why a sentence has no test."""

    text: str


class Deviation(NamedTuple):
    """The row of docs/rfcs.md that has what is done instead; and its tests."""

    rule: str
    tests: tuple[str, ...] = ()


Held: TypeAlias = Reason | Deviation | tuple[str, ...]
Sections: TypeAlias = Mapping[str, Sequence[tuple[str, Held]]]

PASSWORD: Final = Reason("no simple password is offered")
MD5: Final = Reason("no keyed MD5 is offered")
DEMAND: Final = Reason("no demand mode is offered")

_FIRST_VALUES: Final = ("test_rfc5880_6_8_1_variables_begin_as_the_rfc_demands",)
_UNIQUE: Final = ("test_discriminators_are_not_zero_and_unique",)
_LAYOUT: Final = ("test_the_section_has_the_layout_of_section_4_4",)
_BROKEN: Final = ("test_a_packet_that_breaks_a_rule_is_discarded",)
_AUTHENTICATION: Final = ("test_authentication_that_is_missing_or_not_configured",)
_NOT_AUTHENTIC: Final = ("test_rfc5880_6_7_4_another_type_key_length_or_digest_is_discarded",)
_NO_DEMAND: Final = ("test_rfc5880_6_6_the_demand_bit_is_never_set",)
_WINDOW: Final = (
    "test_sequence_numbers_are_in_a_window",
    "test_the_window_has_three_times_the_detect_mult_of_the_packet",
    "test_rfc5880_6_7_4_a_sequence_number_out_of_range_is_discarded",
)
_KEPT: Final = (
    "test_rfc5880_6_8_1_a_session_is_kept_for_the_detection_time_in_any_state",
    "test_rfc5880_6_8_1_a_session_is_kept_for_the_detection_time_of_a_patient_neighbor",
)
_FORGOTTEN: Final = (
    "test_rfc5880_6_8_1_the_neighbors_discriminator_is_forgotten_after_the_detection_time",
    "test_rfc5880_6_8_1_a_session_that_is_down_forgets_the_discriminator_as_well",
    "test_rfc5880_6_8_1_a_passive_neighbor_that_went_down_and_started_again_comes_up",
    "test_rfc5880_6_8_1_a_neighbor_that_goes_while_this_end_is_switched_off_is_forgotten",
)
_FIRST_PACKET: Final = ("test_rfc5880_6_3_the_first_packet_is_of_the_session_of_its_addresses",)
_TTL: Final = (
    "test_rfc5881_5_packets_have_a_ttl_of_255",
    "test_rfc5881_5_a_packet_of_another_ttl_than_255_is_discarded",
)
_OWN_ADDRESS: Final = (
    "test_a_packet_is_from_this_node_for_this_node",
    "test_what_a_neighbor_returns_is_received",
)
_ANY_SOURCE: Final = Deviation("5881 section 6", ("test_a_packet_from_elsewhere",))

RFC_5880: Final[Sections] = {
    "4.1": [
        (
            "M is zero",
            ("test_rfc5880_4_1_the_multipoint_bit_is_zero_and_its_packets_are_discarded",),
        ),
    ],
    "4.2": [("length of a password", PASSWORD), ("its form", PASSWORD)],
    "4.3": [("reserved octet", MD5), ("form of a key", MD5)],
    "4.4": [
        ("reserved octet", ("test_rfc5880_4_4_the_reserved_octet_is_zero_and_ignored",)),
        (
            "form of a key",
            ("test_a_session_has_the_key_of_its_file_and_after_a_reload_the_new_one", *_LAYOUT),
        ),
    ],
    "6.1": [
        (
            "active: sends before it has received",
            ("test_rfc5880_6_1_an_active_end_sends_whether_it_has_received_or_not",),
        ),
        (
            "passive: does not",
            ("test_rfc5880_6_1_a_passive_end_sends_nothing_before_it_has_received",),
        ),
        (
            "one end is active: each that is not configured otherwise",
            ("test_rfc5880_6_1_an_active_end_sends_whether_it_has_received_or_not",),
        ),
    ],
    "6.3": [("unique discriminators", _UNIQUE)],
    "6.5": [
        ("no P and F", ("test_rfc5880_6_5_no_packet_has_both_p_and_f",)),
        (
            "P on periodic packets",
            ("test_rfc5880_6_5_a_poll_sequence_takes_no_packets_of_its_own",),
        ),
    ],
    "6.6": [
        ("D only while both are Up", _NO_DEMAND),
        ("a change of D is polled", _NO_DEMAND),
        (
            "new contents in demand mode are polled",
            (
                "test_rfc5880_6_6_a_neighbor_in_demand_mode_has_new_contents_by_a_poll_sequence",
                "test_rfc5880_6_6_a_neighbor_in_demand_mode_has_its_new_discriminator_by_a_poll_sequence",
                "test_rfc5880_6_6_a_second_poll_sequence_with_a_neighbor_in_demand_mode_is_sent_as_well",
            ),
        ),
    ],
    "6.7": [("both types of SHA1", ("test_rfc5880_6_7_1_both_types_of_sha1_are_supported",))],
    "6.7.2": [
        ("the password is in each packet", PASSWORD),
        ("type", PASSWORD),
        ("length of the section", PASSWORD),
        ("length of the password", PASSWORD),
        ("ASCII", PASSWORD),
        ("another type", PASSWORD),
        ("another key", PASSWORD),
        ("another length", PASSWORD),
        ("another password", PASSWORD),
        ("the right one", PASSWORD),
    ],
    "6.7.3": [
        ("type", MD5),
        ("length", MD5),
        ("key", MD5),
        ("sequence number", MD5),
        ("place of the key", MD5),
        ("ASCII", MD5),
        ("over the whole packet", MD5),
        ("the digest is sent, the key is not", MD5),
        ("next sequence number", MD5),
        ("another type", MD5),
        ("another key", MD5),
        ("another length", MD5),
        ("range of sequence numbers", MD5),
        ("range, meticulous", MD5),
        ("first sequence number", MD5),
        ("the right digest", MD5),
        ("another digest", MD5),
    ],
    "6.7.4": [
        ("type", _LAYOUT),
        ("length", _LAYOUT),
        ("key", _LAYOUT),
        (
            "sequence number",
            ("test_rfc5880_6_7_4_each_meticulous_packet_has_the_next_sequence_number",),
        ),
        ("place of the key", _LAYOUT),
        (
            "ASCII",
            ("test_a_session_has_the_key_of_its_file_and_after_a_reload_the_new_one",),
        ),
        ("over the whole packet", (*_LAYOUT, "test_a_changed_octet_is_noticed")),
        ("the hash is sent, the key is not", _LAYOUT),
        (
            "next sequence number",
            ("test_rfc5880_6_7_4_each_meticulous_packet_has_the_next_sequence_number",),
        ),
        ("another type", (*_NOT_AUTHENTIC, "test_both_ends_have_a_key_or_none")),
        ("another key", _NOT_AUTHENTIC),
        ("another length", (*_NOT_AUTHENTIC, "test_a_section_of_another_length_is_refused")),
        ("range of sequence numbers", _WINDOW),
        ("range, meticulous", _WINDOW),
        (
            "first sequence number",
            (
                "test_without_a_known_number_any_is_taken",
                "test_a_number_is_taken_and_not_accepted_again",
            ),
        ),
        ("the right hash", ("test_equal_keys_establish_and_stay",)),
        ("another hash", (*_NOT_AUTHENTIC, "test_other_keys_do_not")),
    ],
    "6.8.1": [
        ("kept for the detection time", _KEPT),
        ("SessionState", _FIRST_VALUES),
        ("RemoteSessionState", _FIRST_VALUES),
        ("LocalDiscr", _UNIQUE),
        ("RemoteDiscr", _FIRST_VALUES),
        ("RemoteDiscr after silence", _FORGOTTEN),
        ("LocalDiag", _FIRST_VALUES),
        ("DesiredMinTxInterval", _FIRST_VALUES),
        ("RemoteMinRxInterval", _FIRST_VALUES),
        ("RemoteDemandMode", _FIRST_VALUES),
        ("DetectMult", ("test_rfc5880_6_8_1_the_detect_multiplier_is_not_zero",)),
        ("XmitAuthSeq", ("test_rfc5880_6_8_1_the_first_sequence_number_is_random",)),
        ("AuthSeqKnown", _FIRST_VALUES),
        (
            "AuthSeqKnown after silence",
            ("test_rfc5880_6_8_1_any_sequence_number_is_taken_after_twice_the_detection_time",),
        ),
    ],
    "6.8.3": [
        (
            "a changed interval is polled",
            Deviation(
                "5880 section 6.8.3",
                ("test_rfc5880_6_8_3_a_changed_interval_begins_a_poll_sequence",),
            ),
        ),
        (
            "a longer transmit interval waits",
            (
                "test_rfc5880_6_8_3_a_longer_transmit_interval_waits_for_the_end_of_the_poll_sequence",
            ),
        ),
        (
            "a shorter receive interval waits",
            (
                "test_rfc5880_6_8_3_a_shorter_receive_interval_waits_for_the_end_of_the_poll_sequence",
            ),
        ),
        (
            "a second until Up",
            ("test_rfc5880_6_8_3_an_interval_of_a_second_until_the_session_is_up",),
        ),
        (
            "a shorter interval of the neighbor",
            ("test_rfc5880_6_8_3_a_shorter_interval_of_the_neighbor_is_in_use_at_once",),
        ),
        (
            "that has passed already",
            (
                "test_rfc5880_6_8_3_an_interval_that_has_passed_already_is_followed_by_a_packet_at_once",
            ),
        ),
        (
            "other changes at once",
            ("test_rfc5880_6_8_3_any_other_change_is_in_use_at_once",),
        ),
        (
            "two Poll Sequences are parted",
            (
                "test_rfc5880_6_8_3_a_packet_without_f_parts_two_poll_sequences",
                "test_rfc5880_6_8_3_a_change_during_a_pause_of_two_poll_sequences_is_in_the_second",
            ),
        ),
    ],
    "6.8.4": [
        (
            "lost after the detection time",
            ("test_rfc5880_6_8_4_without_a_packet_in_the_detection_time_the_session_is_down",),
        ),
        ("of this end in demand mode", DEMAND),
    ],
    "6.8.5": [
        ("echoes do not return", ("test_rfc5880_6_8_5_without_echo_packets_the_session_is_down",)),
    ],
    "6.8.6": [
        (
            "the order of the checks",
            ("test_rfc5880_6_8_6_the_first_check_that_a_packet_does_not_pass_discards_it",),
        ),
        (
            "nothing more of a discarded packet",
            (
                "test_each_check_has_its_counter_and_no_other_effect",
                "test_rfc5880_6_8_6_a_discarded_packet_does_not_move_the_detection_time",
            ),
        ),
        ("version", _BROKEN),
        ("least length", _BROKEN),
        ("length of the payload", _BROKEN),
        ("Detect Mult", _BROKEN),
        ("M", _BROKEN),
        ("My Discriminator", _BROKEN),
        (
            "Your Discriminator selects",
            Deviation(
                "5880 section 6.3",
                ("test_rfc5880_6_8_6_your_discriminator_selects_among_the_sessions_of_a_neighbor",),
            ),
        ),
        ("no session", ("test_a_discriminator_of_no_session",)),
        ("Up without Your Discriminator", _BROKEN),
        ("addresses select", _FIRST_PACKET),
        ("A is not expected", _AUTHENTICATION),
        ("A is missing", _AUTHENTICATION),
        ("authentication", _NOT_AUTHENTIC),
        (
            "no echoes are required",
            ("test_rfc5880_6_8_6_no_echo_required_ends_the_sending_of_echo_packets",),
        ),
        ("F ends", ("test_rfc5880_6_8_6_a_final_ends_the_poll_sequence",)),
        (
            "demand mode: no periodic packets",
            ("test_rfc5880_6_8_7_nothing_periodic_is_sent_to_a_neighbor_in_demand_mode",),
        ),
        (
            "no demand mode: periodic packets",
            (
                "test_rfc5880_6_8_6_a_neighbor_in_demand_mode_that_is_not_up_is_sent_periodic_packets",
                "test_rfc5880_6_8_14_periodic_packets_begin_again_with_the_end_of_demand_mode",
            ),
        ),
    ],
    "6.8.7": [
        (
            "no sooner than the longer interval",
            ("test_rfc5880_6_8_2_no_packet_is_sent_sooner_than_the_longer_interval_less_jitter",),
        ),
        ("jitter", ("test_rfc5880_6_8_7_intervals_have_jitter_of_up_to_a_quarter",)),
        (
            "jitter with a multiplier of one",
            ("test_rfc5880_6_8_7_with_a_multiplier_of_one_jitter_is_a_tenth_at_least",),
        ),
        (
            "calculated with each change",
            (
                "test_rfc5880_6_8_3_any_other_change_is_in_use_at_once",
                "test_a_longer_interval_of_the_neighbor_is_used_from_the_next_packet",
            ),
        ),
        (
            "passive without a neighbor",
            (
                "test_rfc5880_6_1_a_passive_end_sends_nothing_before_it_has_received",
                "test_rfc5880_6_8_7_a_passive_end_is_silent_again_without_its_neighbor",
            ),
        ),
        (
            "none are required",
            ("test_rfc5880_6_8_7_nothing_periodic_is_sent_to_a_neighbor_that_requires_none",),
        ),
        (
            "demand mode",
            ("test_rfc5880_6_8_7_nothing_periodic_is_sent_to_a_neighbor_in_demand_mode",),
        ),
        ("P is answered", ("test_rfc5880_6_8_7_a_poll_is_answered_at_once_in_each_state",)),
        ("with a limit of Finals", Reason("Finals have no limit")),
        ("D only while both are Up", _NO_DEMAND),
        ("contents", ("test_rfc5880_6_8_7_the_fields_of_a_packet_are_the_variables",)),
    ],
    "6.8.8": [
        (
            "an echo is of its session",
            ("test_rfc5880_6_8_8_an_echo_packet_is_of_the_session_that_sent_it",),
        ),
        (
            "missing echoes are noticed",
            ("test_echo_packets_that_do_not_return_take_the_session_down",),
        ),
    ],
    "6.8.9": [
        (
            "none before Up",
            ("test_rfc5880_6_8_9_no_echo_packet_is_sent_before_the_session_is_up",),
        ),
        ("none are permitted", ("test_a_neighbor_that_wants_no_echo_is_sent_none",)),
        (
            "interval",
            ("test_rfc5880_6_8_9_echo_packets_have_the_interval_that_the_neighbor_requires",),
        ),
    ],
    "6.8.14": [
        (
            "the end of demand mode",
            ("test_rfc5880_6_8_14_periodic_packets_begin_again_with_the_end_of_demand_mode",),
        ),
    ],
    "6.8.15": [("reset of the forwarding plane", Deviation("5880 section 6.8.15"))],
    "6.8.16": [
        (
            "switched off and on",
            (
                "test_rfc5880_6_8_16_admin_down_has_its_diagnostic_and_ends_echo_packets",
                "test_rfc5880_6_8_16_an_end_that_is_switched_on_again_begins_with_down",
            ),
        ),
    ],
    "6.8.17": [("diagnostics of another path", Reason("no path is concatenated with a session's"))],
    "6.8.18": [("kept for the detection time", _KEPT)],
    "7": [
        (
            "congestion over several hops",
            Deviation(
                "5880 section 7", ("test_rfc5880_7_after_a_loss_a_packet_is_sent_once_a_second",)
            ),
        ),
    ],
    "9": [("TTL of a single hop", _TTL)],
}

RFC_5881: Final[Sections] = {
    "2": [
        (
            "a path for each session",
            ("test_peers_that_share_a_session_have_the_settings_that_notice_a_loss_first",),
        ),
        ("IPv4 and IPv6", ("test_rfc5881_2_ipv4_and_ipv6_have_sessions_of_their_own",)),
        ("ingress filters let echoes pass", ("test_what_a_neighbor_returns_is_received",)),
        ("packets for the own address", _OWN_ADDRESS),
    ],
    "3": [
        (
            "both ends are active; neighbor, interface and protocol select",
            Deviation(
                "5881 section 3",
                (
                    "test_rfc5880_6_1_an_active_end_sends_whether_it_has_received_or_not",
                    "test_one_address_in_three_devices_is_three_sessions",
                    *_FIRST_PACKET,
                ),
            ),
        ),
    ],
    "4": [
        ("port 3784", ("test_rfc5881_4_control_packets_are_for_port_3784",)),
        ("source port", ("test_rfc5881_4_a_session_has_one_source_port_from_49152_on",)),
        (
            "the same one",
            (
                "test_rfc5881_4_a_session_has_one_source_port_from_49152_on",
                "test_rfc5881_4_the_next_socket_of_a_session_has_the_same_source_port",
            ),
        ),
        (
            "BFD's own fields select",
            ("test_rfc5880_6_8_6_your_discriminator_selects_among_the_sessions_of_a_neighbor",),
        ),
        ("port 3785", ("test_rfc5881_4_echo_packets_are_for_port_3785", _OWN_ADDRESS[0])),
        ("destination of echoes", _OWN_ADDRESS),
        ("source of echoes", Deviation("5881 section 4", (_OWN_ADDRESS[0],))),
        ("echoes reach the neighbor", (_OWN_ADDRESS[1],)),
    ],
    "5": [
        ("TTL without authentication", (_TTL[0],)),
        ("another TTL", (_TTL[1],)),
        ("TTL with authentication", _TTL),
    ],
    "6": [
        (
            "over the hop that is protected",
            Deviation(
                "5881 section 6",
                ("test_rfc5881_6_a_session_of_one_hop_never_comes_up_over_a_router",),
            ),
        ),
        (
            "addresses of the subnet",
            ("test_rfc5881_6_packets_are_between_the_addresses_of_the_session",),
        ),
        ("point to point: no source address", _ANY_SOURCE),
        ("the first packet from anywhere", _ANY_SOURCE),
        (
            "the destination stays",
            ("test_rfc5881_6_packets_are_between_the_addresses_of_the_session",),
        ),
    ],
}

RFC_5882: Final[Sections] = {
    "4.1": [
        (
            "AdminDown keeps no session from being established",
            (
                "test_a_strict_peer_does_not_wait_for_a_neighbor_without_bfd",
                "test_what_is_no_failure",
            ),
        ),
    ],
    "4.4": [
        (
            "one session for all",
            ("test_peers_that_share_a_session_have_the_settings_that_notice_a_loss_first",),
        ),
    ],
    "10.1.3": [("virtual links of OSPF", Reason("there is no OSPF"))],
}

RFC_5883: Final[Sections] = {
    "3": [
        (
            "no echoes",
            ("test_rfc5883_3_the_echo_function_is_used_in_both_directions_of_a_single_hop_alone",),
        ),
    ],
    "4.3": [("unidirectional links", Reason("a BGP session needs both directions"))],
    "5": [("port 4784", ("test_rfc5883_5_control_packets_of_several_hops_are_for_port_4784",))],
}

RFC_9384: Final[Sections] = {
    "3": [("Cease / BFD Down", ("test_the_session_ends_with_cease_bfd_down_and_the_routes_go",))],
    "4": [
        (
            "the reason where nothing can be sent",
            ("test_the_session_ends_with_cease_bfd_down_and_the_routes_go",),
        ),
        (
            "within a Hard Reset",
            ("test_bfd_down_is_within_a_hard_reset_where_both_ends_have_rfc_8538",),
        ),
    ],
}

STRICT: Final[Sections] = {
    "4": [
        ("nothing of BFD without BFD", ("test_a_node_without_bfd_holds_no_peer",)),
    ],
    "6": [("the capability", Deviation("draft-ietf-idr-bgp-bfd-strict-mode"))],
    "10": [
        ("BGP begins while BFD is held down", Reason("BFD is held down by nothing")),
        ("it prevents no connection", ("test_both_ends_may_be_strict",)),
    ],
}

RFCS: Final[Mapping[str, Sections]] = {
    "5880": RFC_5880,
    "5881": RFC_5881,
    "5882": RFC_5882,
    "5883": RFC_5883,
    "9384": RFC_9384,
    "draft-ietf-idr-bgp-bfd-strict-mode": STRICT,
}


def _counts(text: str) -> dict[str, int]:
    """Return the numbers of sections."""
    return {section: int(count) for section, count in map(str.split, text.split(","))}


COUNTS: Final[Mapping[str, Mapping[str, int]]] = {
    "5880": _counts("4.1 1, 4.2 2, 4.3 2, 4.4 2")
    | _counts("6.1 3, 6.3 1, 6.5 2, 6.6 3, 6.7 1, 6.7.2 10, 6.7.3 17, 6.7.4 17")
    | _counts("6.8.1 14, 6.8.3 8, 6.8.4 2, 6.8.5 1, 6.8.6 19, 6.8.7 11, 6.8.8 2, 6.8.9 3")
    | _counts("6.8.14 1, 6.8.15 1, 6.8.16 1, 6.8.17 1, 6.8.18 1, 7 1, 9 1"),
    "5881": {"2": 4, "3": 1, "4": 8, "5": 3, "6": 5},
    "5882": {"4.1": 1, "4.4": 1, "10.1.3": 1},
    "5883": {"3": 1, "4.3": 1, "5": 1},
    "9384": {"3": 1, "4": 2},
    # Of version 19, August 2026.
    "draft-ietf-idr-bgp-bfd-strict-mode": {"4": 1, "6": 1, "10": 2},
}
"""How many such sentences each section has; the other sections have none."""
