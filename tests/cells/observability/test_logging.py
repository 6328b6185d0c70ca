"""Log lines: one event one line, nothing secret, never waiting for a reader."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

from cells.hive import Health
from cells.hive.lifecycle import Lifecycle
from cells.observability.logging import Logs, lines
from cells.observability.logging.sink import Sink
from cells.options import LoggingOptions
from tests.cells.test_safe_text import HOSTILE


def logged(emit: Callable[[], None], options: LoggingOptions | None = None) -> list[str]:
    """Run a started logging cell around a function; return the lines."""
    read, write = os.pipe()
    sink = Sink(write, lambda count: f"dropped={count}")
    lifecycle = Lifecycle()
    Logs(lifecycle, Health(), options or LoggingOptions(), sink)

    async def scenario() -> None:
        await lifecycle.start()
        emit()
        await lifecycle.stop()

    asyncio.run(scenario())
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode().splitlines()


def test_text_lines_have_the_documented_keys_in_order() -> None:
    log = structlog.get_logger("waggle.speaker")
    (line,) = logged(lambda: log.info("peer up", event_name="peer.up", peer="tor-1", families=2))
    time_key, rest = line.split(" ", 1)
    assert time_key.startswith("ts=20")
    assert time_key.endswith("Z")
    assert rest == (
        'level=info logger=waggle.speaker event=peer.up msg="peer up" peer=tor-1 families=2'
    )


def test_json_lines_are_objects_with_numbers_as_numbers() -> None:
    log = structlog.get_logger("waggle.speaker")
    (line,) = logged(
        lambda: log.warning("peer down", event_name="peer.down", peer_asn=65001),
        LoggingOptions(format="json"),
    )
    found = json.loads(line)
    assert found.pop("ts").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "waggle.speaker",
        "event": "peer.down",
        "msg": "peer down",
        "peer_asn": 65001,
    }


def test_levels_are_filtered_for_both_kinds_of_loggers() -> None:
    def emit() -> None:
        structlog.get_logger("a").debug("hidden")
        structlog.get_logger("a").info("hidden")
        logging.getLogger("b").info("hidden")
        logging.getLogger("b").warning("shown %d", 1)
        logging.getLogger("aiohttp.access").error("hidden")
        structlog.get_logger("a").error("shown too")

    found = logged(emit, LoggingOptions(level="warning"))
    assert [line.split(" ", 1)[1] for line in found] == [
        'level=warning logger=b msg="shown 1"',
        'level=error logger=a msg="shown too"',
    ]


def test_secrets_are_redacted_by_key() -> None:
    log = structlog.get_logger("x")
    (line,) = logged(
        lambda: log.info("read", password="hunter2", md5_key="k", secret="default/bgp")
    )
    assert "hunter2" not in line
    assert "password=[redacted] md5_key=[redacted] secret=default/bgp" in line


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("name", HOSTILE)
def test_h50_one_event_is_one_line_for_any_text_of_a_peer(name: str, form: str) -> None:
    text = HOSTILE[name][0]
    log = structlog.get_logger("x")
    options = LoggingOptions(format="json" if form == "json" else "text")
    (line,) = logged(lambda: log.info(text, reason=text), options)
    assert line.isprintable()


@given(st.text(st.characters()), st.text(st.characters()))
def test_h50_lines_are_printable_for_any_text(message: str, value: str) -> None:
    event = lines.event(when=0, level="info", logger="x", message=message, values={"k": value})
    assert lines.logfmt(event).isprintable()
    assert lines.json(event).isprintable()
    json.loads(lines.json(event))


def test_an_exception_is_one_line_with_its_trace() -> None:
    def emit() -> None:
        try:
            int("first\nsecond")
        except ValueError as error:
            structlog.get_logger("x").error("failed", exc_info=error)

    (line,) = logged(emit)
    assert 'error="ValueError: invalid literal' in line
    assert "Traceback" in line
    (line,) = logged(emit, LoggingOptions(format="json"))
    assert json.loads(line)["exception"].splitlines()[0] == "Traceback (most recent call last):"


def test_an_exception_that_is_being_handled_is_an_error() -> None:
    def emit() -> None:
        try:
            int("x")
        except ValueError:
            structlog.get_logger("x").exception("failed")

    (line,) = logged(emit)
    assert "level=error" in line
    assert 'error="ValueError: invalid literal' in line


def test_quotes_and_backslashes_of_a_value_are_escaped() -> None:
    log = structlog.get_logger("x")
    (line,) = logged(lambda: log.info("m", path='a\\b "c"', lines="d\ne", yes=True, no=None))
    assert line.endswith(r'path="a\\b \"c\"" lines="d\ne" yes=true')


def test_a_line_within_a_span_names_it() -> None:
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False)

    def emit() -> None:
        with trace.use_span(trace.NonRecordingSpan(context)):
            structlog.get_logger("x").info("round")
        structlog.get_logger("x").info("outside")

    inside, outside = logged(emit)
    assert inside.endswith(f"trace_id={0xABC:032x} span_id={0xDEF:016x}")
    assert "trace_id" not in outside


def test_f31_a_reader_that_does_not_read_costs_lines_and_no_time() -> None:
    read, write = os.pipe()
    sink = Sink(write, lambda count: f"dropped={count}", limit=100)
    sink.start()
    # Nothing reads meanwhile: what waited would wait for ever, and so would an end that has no limit.
    for number in range(5000):
        sink.write(f"{number} " + "x" * 1000)
    sink.stop(0.2)
    # Once the pipe is read, a line has the number of the missing ones.
    found: list[bytes] = []
    while b"dropped=" not in b"".join(found):
        found.append(os.read(read, 1 << 20))
    os.close(read)
    sink.stop(2)
    os.close(write)


def test_a_broken_pipe_swallows_lines() -> None:
    read, write = os.pipe()
    os.close(read)
    sink = Sink(write, str)
    sink.start()
    sink.write("without a reader")
    sink.stop(2)
    os.close(write)


def test_stopping_puts_the_defaults_back() -> None:
    level = logging.getLogger().level
    logged(lambda: None)
    assert logging.getLogger().level == level
    assert not structlog.is_configured()


def test_a_level_that_an_object_sets_is_in_effect_until_it_goes() -> None:
    read, write = os.pipe()
    sink = Sink(write, lambda count: f"dropped={count}")
    lifecycle, health = Lifecycle(), Health(("logging",))
    logs = Logs(lifecycle, health, LoggingOptions(level="error"), sink)
    log = structlog.get_logger("a")

    def emit(mark: str) -> None:
        log.debug("debug", mark=mark)
        logging.getLogger("b").info("info %s", mark)
        log.error("error", mark=mark)

    async def scenario() -> None:
        logs.override("x", "debug")
        await lifecycle.start()
        emit("early")
        logs.override("x", "none")
        emit("none")
        logs.override("y", "info")
        assert [one.message for one in health.report()] == ["level info, set by x, y"]
        emit("both")
        logs.override("x", None)
        logs.override("y", None)
        emit("configured")
        assert [one.message for one in health.report()] == ["level error"]
        logs.override("y", "info")
        logs.configure("warning")
        emit("over")
        assert [one.message for one in health.report()] == ["level info, set by y"]
        logs.override("y", None)
        emit("reconfigured")
        assert [one.message for one in health.report()] == ["level warning"]
        await lifecycle.stop()

    asyncio.run(scenario())
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = [line.rpartition("msg=")[2] for line in pipe.read().decode().splitlines()]
    assert found == [
        "debug mark=early",
        '"info early"',
        "error mark=early",
        '"info both"',
        "error mark=both",
        "error mark=configured",
        '"info over"',
        "error mark=over",
        "error mark=reconfigured",
    ]


@pytest.mark.parametrize("library", ["aiohttp.access", "opentelemetry.sdk", "urllib3.pool"])
def test_what_libraries_log_of_each_request_is_no_line(library: str) -> None:
    def emit() -> None:
        logging.getLogger(library).warning("a request")
        logging.getLogger("other").warning("else")

    (line,) = logged(emit)
    assert line.endswith(" logger=other msg=else")


def test_a_logger_that_was_used_before_has_the_output_and_the_level_of_the_present() -> None:
    log = structlog.get_logger("waggle.test")
    first = logged(lambda: log.info("one"))
    nothing = logged(lambda: log.info("two"), LoggingOptions(level="error"))
    last = logged(lambda: log.info("three"))
    assert [len(lines) for lines in (first, nothing, last)] == [1, 0, 1]
    assert "three" in last[0]


def test_a_record_whose_arguments_do_not_fit_is_a_line_with_its_text() -> None:
    logs = Logs(Lifecycle(), Health(), LoggingOptions())
    emitted: list[tuple[object, ...]] = []
    logs.emit = lambda *given: emitted.append(given)  # type: ignore[method-assign]
    for arguments in (("x",), ("x", "y")):
        record = logging.LogRecord("library", 30, "", 1, "%d of %s", arguments, None)
        logs._handler.emit(record)
    assert emitted == [("warning", "library", "%d of %s", {})] * 2


def test_lines_that_were_dropped_are_a_line_with_their_number() -> None:
    logs = Logs(Lifecycle(), Health(), LoggingOptions(format="json"))
    line = json.loads(logs._dropped(7))
    expected = {
        "level": "warning",
        "logger": "waggle.logging",
        "event": "logging.dropped",
        "lines": 7,
    }
    assert expected.items() <= line.items()
    assert "log lines dropped: the reader is too slow" in line.values()
    assert len(line) == len(expected) + 2
