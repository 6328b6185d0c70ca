"""Whether an agent without --fib installs received routes: its dialects, and what it may do."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from cells.declarations import NO_NET_ADMIN
from cells.hive import capabilities, load
from cells.kernel.cell import log_choice
from reconcilers.kernel.options import Fib
from waggle_agent.__main__ import CELLS

FRRK8S = {"cells": {"frrk8s": {"enabled": True}}}
OVNK = {"cells": {"ovnk": {"enabled": True}}}
CILIUM: dict[str, object] = {}


@pytest.mark.parametrize(
    ("file", "flags", "capable", "reason"),
    [
        (FRRK8S, {}, True, None),
        (OVNK, {}, True, None),
        (FRRK8S, {}, False, NO_NET_ADMIN),
        (FRRK8S, {"--fib-socket": "/run/waggle-kernel/kernel.sock"}, False, None),
        (CILIUM, {}, True, "--fib is not set"),
        (CILIUM, {"--cilium-import": ["10.0.0.0/8"]}, True, None),
        (CILIUM, {"--cilium-import": ["10.0.0.0/8"]}, False, NO_NET_ADMIN),
        (CILIUM, {"--fib": "true"}, False, None),
        (FRRK8S, {"--fib": "false"}, False, None),
        (FRRK8S, {"disable_cell": ["kernel"]}, True, "switched off"),
    ],
)
def test_routes_are_installed_by_default_where_an_api_is_for_that_and_they_can_be(
    monkeypatch: pytest.MonkeyPatch,
    file: dict[str, object],
    flags: dict[str, object],
    *,
    capable: bool,
    reason: str | None,
) -> None:
    monkeypatch.setattr(capabilities, "children_have", lambda _: capable)
    loaded = load(CELLS, flags=flags, file=file)
    assert loaded.reasons.get("kernel") == reason
    assert loaded.enabled["kernel"] is (reason is None)


@pytest.mark.parametrize(
    ("fib", "installing", "event"),
    [
        (None, ["frrk8s"], "kernel.on"),
        (True, [], "kernel.on"),
        (False, [], "kernel.off"),
        ("auto", [], "kernel.off"),
    ],
)
def test_the_log_has_whether_routes_are_installed(
    fib: Fib, installing: list[str], event: str
) -> None:
    with capture_logs() as logs:
        log_choice(fib, installing)
    shown = "default" if fib is None else str(fib).lower()
    values = (
        {"dialects": ",".join(installing), "fib": shown}
        if event == "kernel.on"
        else {"reason": f"--fib={shown}"}
    )
    assert [dict(line, event="") for line in logs] == [
        {"event": "", "log_level": "info", "event_name": event, **values}
    ]
