"""One cause, one line: an outage makes every feed fail, and is logged once."""

from __future__ import annotations

from structlog.testing import capture_logs

from cells.sources.feed_log import NAMED_FEEDS, FeedLog
from resources.kubernetes import FeedStatus, Phase

KINDS = [f"Kind{number}" for number in range(15)]
REFUSED = "cannot reach https://192.0.2.1:6443: Connection refused"


def feed(
    kind: str, phase: Phase = Phase.FOLLOWING, cause: str = "", message: str = ""
) -> FeedStatus:
    return FeedStatus(kind, "", phase, message or cause, 0, cause)


def lines(log: FeedLog, *statuses: FeedStatus, away: float = 0.0) -> list[tuple[str, str]]:
    """Return event and reason (or feeds) of the lines for a new state."""
    with capture_logs() as found:
        log.report(statuses, away, REFUSED if away else "")
        log.write()
    return [(line["event_name"], line.get("reason") or line.get("feeds", "")) for line in found]


def test_an_outage_is_one_line_and_so_is_its_end() -> None:
    log = FeedLog(lambda: 1060.0)
    assert lines(log, *map(feed, KINDS)) == []
    failing = [feed(kind, Phase.FAILING, REFUSED) for kind in KINDS]
    assert lines(log, *failing, away=1000.0) == [("kubernetes.away", REFUSED)]
    assert lines(log, *failing, away=1000.0) == []
    assert lines(log, *map(feed, KINDS)) == [("kubernetes.back", "")]


def test_an_outage_at_the_start_is_one_line() -> None:
    log = FeedLog(lambda: 1060.0)
    failing = [feed(kind, Phase.FAILING, REFUSED) for kind in KINDS]
    assert lines(log, *failing, away=1000.0) == [("kubernetes.away", REFUSED)]


def test_kinds_with_one_cause_are_one_line_while_others_are_read() -> None:
    log = FeedLog(lambda: 0.0)
    lines(log, *map(feed, KINDS))
    failing = [feed(kind, Phase.FAILING, "answers 500") for kind in KINDS[1:]]
    with capture_logs() as found:
        log.report([feed(KINDS[0]), *failing], 0.0, "")
        log.write()
    (line,) = found
    assert line["event_name"] == "kubernetes.failing"
    assert line["feeds"] == f"Kind1, Kind2, Kind3 and {len(failing) - NAMED_FEEDS} more"
    assert lines(log, *map(feed, KINDS)) == [
        ("kubernetes.following", f"Kind1, Kind2, Kind3 and {len(failing) - NAMED_FEEDS} more")
    ]


def test_different_causes_are_different_lines() -> None:
    log = FeedLog(lambda: 0.0)
    found = lines(
        log,
        feed("Node"),
        feed("Secret", Phase.FORBIDDEN, message="may not list secrets"),
        feed("Service", Phase.FAILING, "answers 500"),
        feed("Pool", Phase.MISSING, message="there is no such kind"),
    )
    assert found == [
        ("kubernetes.failing", "may not list secrets"),
        ("kubernetes.failing", "answers 500"),
        ("kubernetes.missing", "there is no such kind"),
    ]


def test_a_kind_whose_definition_was_deleted_is_a_warning() -> None:
    log = FeedLog(lambda: 0.0)
    lines(log, feed("Node"), feed("Advertisement"))
    text = "there is no such kind any more (was its CRD deleted?)"
    found = lines(log, feed("Node"), feed("Advertisement", Phase.REMOVED, message=text))
    assert found == [("kubernetes.failing", text)]
    found = lines(log, feed("Node"), feed("Advertisement"))
    assert found == [("kubernetes.following", "Advertisement")]


def test_the_number_of_known_objects_is_no_other_cause() -> None:
    log = FeedLog(lambda: 0.0)
    lines(log, feed("Node"), feed("Service", Phase.FAILING, "answers 500"))
    again = feed(
        "Service", Phase.FAILING, "answers 500", "answers 500; the 4 known before are kept"
    )
    assert lines(log, feed("Node"), again) == []
