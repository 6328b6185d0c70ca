"""The dashboard of all nodes: what is down, which nodes differ from the others, what changes."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import frame, lines, number, rows


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    board = frame("waggle-fleet", "Waggle / Fleet", "All nodes: sessions, routes, configuration.")
    for panel in (
        number("Agents", "count(waggle_config_current)"),
        number("Agents that are not ready", "count(waggle_ready == 0) or vector(0)", bad_from=1),
        number("Sessions established", "sum(waggle_bgp_session_up)"),
        number("Sessions down", "count(waggle_bgp_session_up == 0) or vector(0)", bad_from=1),
        number(
            "Configuration not current",
            "count(waggle_config_current == 0) or vector(0)",
            bad_from=1,
            text="Nodes on which the last valid state of some objects is in effect.",
        ),
        number("Versions", "count(count by (version) (waggle_build_info))", bad_from=2),
    ):
        board = board.with_panel(panel)
    return (
        board.with_row(dashboard.Row("Sessions"))
        .with_panel(
            lines(
                "Sessions",
                ("sum(waggle_bgp_session_up)", "established"),
                ("count(waggle_bgp_session_up)", "configured"),
            )
        )
        .with_panel(
            lines(
                "Losses of sessions in an hour",
                ("sum by (node) (increase(waggle_bgp_session_drops_total[1h]))", "{{node}}"),
            )
        )
        .with_panel(
            rows(
                "Sessions that are down",
                'waggle_bgp_session_state{state!="Established"}',
                "node",
                "instance",
                "peer",
                "peer_address",
                "state",
                value="sessions",
            )
        )
        .with_panel(
            rows(
                "Nodes by sessions that are up",
                "sort(sum by (node) (waggle_bgp_session_up) / count by (node) "
                "(waggle_bgp_session_up))",
                "node",
                value="part",
            )
        )
        .with_row(dashboard.Row("Routes"))
        .with_panel(
            lines(
                "Advertised routes",
                ("sum by (node) (waggle_bgp_advertised_routes)", "{{node}}"),
            )
        )
        .with_panel(
            lines(
                "Received routes",
                ("sum by (node, status) (waggle_bgp_received_routes)", "{{node}} {{status}}"),
            )
        )
        .with_panel(
            lines(
                "Routes that wait because of a limit",
                ("sum by (node) (waggle_bgp_waiting_routes) or vector(0)", "{{node}}"),
            )
        )
        .with_panel(
            lines(
                "From a change to the sessions (99th percentile)",
                (
                    (
                        "histogram_quantile(0.99, sum by (le) "
                        "(rate(waggle_propagation_duration_seconds_bucket[$__rate_interval])))"
                    ),
                    "all nodes",
                ),
                unit="s",
            )
        )
        .with_row(dashboard.Row("Configuration and processes"))
        .with_panel(
            rows(
                "Configurations by age",
                "sort_desc(time() - waggle_config_current_timestamp_seconds > 0)",
                "node",
                value="seconds",
                text="0 is current.",
            )
        )
        .with_panel(lines("Problems", ("sum by (node) (waggle_problems)", "{{node}}")))
        .with_panel(
            lines(
                "Memory",
                (
                    (
                        "max by (node) (process_resident_memory_bytes and on (node, job, instance) "
                        "waggle_build_info)"
                    ),
                    "{{node}}",
                ),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Writes of the operators",
                ("sum(rate(waggle_operator_writes_total[$__rate_interval]))", "writes"),
                (
                    (
                        'sum(rate(waggle_reconcile_errors_total{controller="operator"}'
                        "[$__rate_interval])) or vector(0)"
                    ),
                    "errors",
                ),
                unit="reqps",
            )
        )
    )
