"""The dashboard of one node: its sessions, its configuration, its process.

Several clusters may have a node of this name: each has series of its own.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import choice, frame, lines, number

NODE = '{node=~"$node"}'
RATE = "[$__rate_interval]"
OWN = " and on (node, job, instance) waggle_build_info"
"""Of Waggle: other programs on the node have metrics of these names, too."""


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    board = frame("waggle-node", "Waggle / Node", "One agent: sessions, configuration, process.")
    board = board.with_variable(choice("node", "Node", "label_values(waggle_config_current, node)"))
    for panel in (
        number("Sessions established", f"sum by (cluster) (waggle_bgp_session_up{NODE})"),
        number(
            "Sessions down",
            f"count by (cluster) (waggle_bgp_session_up{NODE} == 0) or on () vector(0)",
            bad_from=1,
        ),
        number(
            "Advertised routes",
            f"sum by (cluster) (waggle_bgp_advertised_routes{NODE}) or on () vector(0)",
        ),
        number(
            "Age of the configuration",
            f"max by (cluster) (time() - waggle_config_current_timestamp_seconds{NODE})",
            unit="s",
            bad_from=900,
            text="Since when the last valid state of some objects is in effect.",
        ),
        number("Problems", f"sum by (cluster) (waggle_problems{NODE})", bad_from=1),
        number("Drained", f"max by (cluster) (waggle_drained{NODE})", bad_from=1),
    ):
        board = board.with_panel(panel)
    return (
        board.with_row(dashboard.Row("Sessions"))
        .with_panel(
            lines("Sessions", (f"waggle_bgp_session_up{NODE}", "{{cluster}} {{instance}} {{peer}}"))
        )
        .with_panel(
            lines(
                "Messages received",
                (
                    f"sum by (cluster, type) (rate(waggle_bgp_messages_received_total{NODE}{RATE}))",
                    "{{cluster}} {{type}}",
                ),
                unit="mps",
            )
        )
        .with_panel(
            lines(
                "Messages sent",
                (
                    f"sum by (cluster, type) (rate(waggle_bgp_messages_sent_total{NODE}{RATE}))",
                    "{{cluster}} {{type}}",
                ),
                unit="mps",
            )
        )
        .with_panel(
            lines(
                "Routes by peer",
                (
                    f"sum by (cluster, instance, peer) (waggle_bgp_advertised_routes{NODE})",
                    "{{cluster}} advertised {{peer}}",
                ),
                (
                    f"sum by (cluster, instance, peer) (waggle_bgp_received_routes{NODE})",
                    "{{cluster}} received {{peer}}",
                ),
            )
        )
        .with_row(dashboard.Row("Configuration"))
        .with_panel(
            lines(
                "Rounds (99th percentile)",
                (
                    (
                        "histogram_quantile(0.99, sum by (cluster, controller, le) "
                        f"(rate(waggle_reconcile_duration_seconds_bucket{NODE}{RATE})))"
                    ),
                    "{{cluster}} {{controller}}",
                ),
                unit="s",
            )
        )
        .with_panel(
            lines(
                "From a change to the sessions",
                *(
                    (
                        (
                            f"histogram_quantile({quantile}, sum by (cluster, le) "
                            f"(rate(waggle_propagation_duration_seconds_bucket{NODE}{RATE})))"
                        ),
                        f"{{{{cluster}}}} {name}",
                    )
                    for quantile, name in ((0.5, "median"), (0.99, "99th percentile"))
                ),
                unit="s",
            )
        )
        .with_panel(lines("Objects", (f"waggle_source_objects{NODE} > 0", "{{cluster}} {{kind}}")))
        .with_panel(
            lines(
                "Watches that were restarted",
                (
                    (
                        "sum by (cluster, reason) "
                        f"(rate(waggle_kubernetes_watch_restarts_total{NODE}{RATE}))"
                    ),
                    "{{cluster}} {{reason}}",
                ),
                unit="ops",
                text="An agent that reads manifests has none.",
            )
        )
        .with_row(dashboard.Row("Process"))
        .with_panel(
            lines(
                "Processor",
                (f"rate(process_cpu_seconds_total{NODE}{RATE})", "{{cluster}} {{job}}"),
                unit="percentunit",
            )
        )
        .with_panel(
            lines(
                "Memory",
                (f"process_resident_memory_bytes{NODE}{OWN}", "{{cluster}} {{job}}"),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Lag of the event loop (99th percentile)",
                (
                    (
                        "histogram_quantile(0.99, sum by (cluster, job, le) "
                        f"(rate(waggle_event_loop_lag_seconds_bucket{NODE}{RATE})))"
                    ),
                    "{{cluster}} {{job}}",
                ),
                unit="s",
            )
        )
        .with_panel(
            lines(
                "Rows of tables",
                (f"topk by (cluster) (10, waggle_table_rows{NODE})", "{{cluster}} {{table}}"),
            )
        )
        .with_row(dashboard.Row("Kernel"))
        .with_panel(
            lines(
                "Routes in the kernel",
                (
                    f"sum by (cluster) (waggle_kernel_installed_routes{NODE})",
                    "{{cluster}} installed",
                ),
                (f"sum by (cluster) (waggle_kernel_wanted_routes{NODE})", "{{cluster}} wanted"),
                (f"sum by (cluster) (waggle_kernel_failed_routes{NODE})", "{{cluster}} failed"),
            )
        )
        .with_panel(
            lines(
                "Changes of routes by others",
                (
                    f"sum by (cluster, cause) (rate(waggle_kernel_changed_routes_total{NODE}{RATE}))",
                    "{{cluster}} {{cause}}",
                ),
            )
        )
    )
