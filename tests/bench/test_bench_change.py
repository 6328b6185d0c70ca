"""Routers side by side: each change is read from all peers, and ratios are of one start."""

from __future__ import annotations

import pytest

from bench import bench_change
from bench.bench_change import Figures


@pytest.mark.parametrize("own", [False, True], ids=["from-a-feeder", "by-the-local-api"])
def test_two_routers_of_this_checkout_are_measured_side_by_side(own: bool) -> None:
    program = bench_change.of_checkout(bench_change.ROOT, pure=False)
    programs = {"one": program, "two": program}
    for starts in bench_change.measure(programs, restarts=1, changes=14, own=own).values():
        (figures,) = starts
        assert figures.time > 0
        assert figures.cpu > 0


def test_a_ratio_is_of_routers_that_ran_at_the_same_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = [Figures(1.0, 0.2), Figures(5.0, 1.0), Figures(2.0, 0.4)]
    this = [Figures(1.1, 0.18), Figures(5.5, 0.9), Figures(2.2, 0.36)]
    ratios = bench_change.report({"other": other, "this": this})
    assert ratios["this"] == pytest.approx((1.1, 0.9))
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].split() == [
        "this",
        "2.200",
        "1.100",
        "0.360",
        "0.900",
        "0.900",
        "to",
        "0.900",
    ]


def test_messages_are_taken_when_they_are_complete() -> None:
    message = bench_change._message(2, b"abc")
    data = bytearray(message + message[:20])
    assert [*bench_change._messages(data)] == [message]
    data += message[20:]
    assert [*bench_change._messages(data)] == [message]
    assert not data
