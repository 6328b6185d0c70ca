"""Prometheus' text format (version 0.0.4), written in slices.

An agent with a thousand peers has forty thousand samples. They are read and written some at a time, in
turns of the loop, between which sessions go on. The library's writer takes 15 microseconds for each
sample, this one two; a test holds that both write the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from prometheus_client.core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from cells.safe_text import escape
from reconcilers.sliced_work import Slices

SAMPLES_PER_SLICE: Final = 500
"""A slice takes one to four milliseconds."""
CREATED: Final = "_created"
"""Samples of OpenMetrics alone: when a counter began."""

Collected: TypeAlias = "Metric | None"
"""An item of a collector: a metric, or None where other work may be done."""


class PlainCounter(Metric):
    """A counter of another program, whose name has no ``_total`` at its end."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        super().__init__(name, text, "counter")
        self._labelnames = labels

    def add_metric(self, labels: Sequence[str], value: float) -> None:
        """Add a sample."""
        self.add_sample(self.name, dict(zip(self._labelnames, labels, strict=True)), value)


def exposition(collected: Iterable[Collected]) -> Slices[bytes]:
    """Return metrics in the text format, in slices.

    Samples are removed as they are written: all at the end would be freed in one turn of the loop.
    """
    written: list[bytes] = []
    parts: list[str] = []
    samples = 0
    for metric in collected:
        if metric is None:
            yield
            continue
        parts.append(_head(metric))
        while part := metric.samples[:SAMPLES_PER_SLICE]:
            del metric.samples[:SAMPLES_PER_SLICE]
            parts.extend(_lines(part))
            samples += len(part)
            if samples >= SAMPLES_PER_SLICE:
                written.append("".join(parts).encode())
                parts.clear()
                samples = 0
                yield
    written.append("".join(parts).encode())
    return b"".join(written)


def exposed_name(metric: Metric) -> str:
    """Return the name of a metric in the text format."""
    is_plain = metric.type != "counter" or isinstance(metric, PlainCounter)
    return metric.name if is_plain else f"{metric.name}_total"


def is_exposed(sample: Sample) -> bool:
    """Return whether the text format has a sample."""
    return not sample.name.endswith(CREATED)


def _head(metric: Metric) -> str:
    name = exposed_name(metric)
    kind = "untyped" if metric.type == "unknown" else metric.type
    text = escape(metric.documentation.replace("\\", r"\\").replace("\n", r"\n"))
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _lines(samples: Iterable[Sample]) -> Iterator[str]:
    for sample in samples:
        labels = sample.labels
        if not is_exposed(sample):
            continue
        if labels:
            text = ",".join([f'{name}="{_value(value)}"' for name, value in labels.items()])
            yield f"{sample.name}{{{text}}} {_number(sample.value)}\n"
        else:
            yield f"{sample.name} {_number(sample.value)}\n"


def _value(text: str) -> str:
    """Return the value of a label; what is not printable is replaced, as everywhere else."""
    text = escape(text)
    return text.replace("\\", r"\\").replace('"', r"\"") if "\\" in text or '"' in text else text


def _number(value: float) -> str:
    # Most are small, and the same in Go and Python.
    if -1e6 < value < 1e6:
        return repr(float(value))
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]
