"""The dashboard of one peer, as one node or several have it."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import choice, frame, lines, number, rows

PEER = '{node=~"$node",peer=~"$peer"}'
RATE = "[$__rate_interval]"
SERIES = "{{node}} {{instance}}"


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    board = (
        frame(
            "waggle-peer", "Waggle / Peer", "The sessions with one router, of all nodes or of one."
        )
        .with_variable(
            choice("node", "Node", "label_values(waggle_bgp_session_up, node)", every=True)
        )
        .with_variable(
            choice("peer", "Peer", 'label_values(waggle_bgp_session_up{node=~"$node"}, peer)')
        )
    )
    for panel in (
        number("Sessions established", f"sum(waggle_bgp_session_up{PEER})", width=6),
        number(
            "Sessions down",
            f"count(waggle_bgp_session_up{PEER} == 0) or vector(0)",
            bad_from=1,
            width=6,
        ),
        number(
            "Losses in a day",
            f"sum(increase(waggle_bgp_session_drops_total{PEER}[1d]))",
            bad_from=1,
            width=6,
        ),
        number(
            "Youngest session",
            f"min(time() - waggle_bgp_session_established_timestamp_seconds{PEER})",
            unit="s",
            width=6,
        ),
    ):
        board = board.with_panel(panel)
    return (
        board.with_panel(lines("Session", (f"waggle_bgp_session_up{PEER}", SERIES)))
        .with_panel(
            rows(
                "State",
                f"waggle_bgp_session_state{PEER}",
                "node",
                "instance",
                "peer_address",
                "state",
                value="sessions",
            )
        )
        .with_panel(
            lines(
                "Changes of state",
                (
                    f"sum by (to) (increase(waggle_bgp_session_transitions_total{PEER}{RATE}))",
                    "{{to}}",
                ),
            )
        )
        .with_panel(
            lines(
                "NOTIFICATIONs",
                (
                    (
                        "sum by (code, subcode) "
                        f"(increase(waggle_bgp_notifications_received_total{PEER}{RATE}))"
                    ),
                    "received {{code}}/{{subcode}}",
                ),
                (
                    (
                        "sum by (code, subcode) "
                        f"(increase(waggle_bgp_notifications_sent_total{PEER}{RATE}))"
                    ),
                    "sent {{code}}/{{subcode}}",
                ),
                text="Code and subcode of RFC 4271; 6 is Cease.",
            )
        )
        .with_panel(
            lines(
                "Messages received",
                (
                    f"sum by (type) (rate(waggle_bgp_messages_received_total{PEER}{RATE}))",
                    "{{type}}",
                ),
                unit="mps",
            )
        )
        .with_panel(
            lines(
                "Messages sent",
                (f"sum by (type) (rate(waggle_bgp_messages_sent_total{PEER}{RATE}))", "{{type}}"),
                unit="mps",
            )
        )
        .with_panel(
            lines(
                "Advertised routes",
                (f"waggle_bgp_advertised_routes{PEER}", SERIES + " {{family}}"),
            )
        )
        .with_panel(
            lines(
                "Received routes",
                (f"waggle_bgp_received_routes{PEER}", SERIES + " {{family}} {{status}}"),
            )
        )
        .with_panel(
            lines("Send queue", (f"waggle_bgp_send_queue_bytes{PEER}", SERIES), unit="bytes")
        )
        .with_panel(
            lines("BFD", (f"waggle_bfd_session_up{PEER}", SERIES), text="Of peers with BFD.")
        )
        .with_panel(
            lines(
                "Longest gap between BFD packets",
                (f"waggle_bfd_longest_gap_seconds{PEER}", SERIES),
                (f"waggle_bfd_detection_time_seconds{PEER}", SERIES + " (detection time)"),
                unit="s",
            )
        )
        .with_panel(
            lines(
                "Malformed UPDATEs",
                (f"waggle_bgp_malformed_updates{PEER}", SERIES),
                text="Of the present sessions.",
            )
        )
    )
