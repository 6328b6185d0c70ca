"""The metrics of a program that runs in the test's process."""

from __future__ import annotations

from cells.hive.hive import Hive
from cells.observability.metrics import Metrics
from reconcilers.sliced_work import finish


def scrape(hive: Hive) -> str:
    """Return what a scrape of the program has, in one turn of the loop."""
    return finish(hive.get(Metrics).slices()).decode()
