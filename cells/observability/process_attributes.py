"""Attributes of the process, for the resource of the spans that the telemetry cell sends."""

from __future__ import annotations


class ProcessAttributes(dict[str, str]):
    """Attributes by OpenTelemetry's names, such as ``k8s.node.name``; empty values are omitted."""


class UnsampledSpans:
    """Contributed by a cell that needs the spans of all traces, including spans that are not sent."""
