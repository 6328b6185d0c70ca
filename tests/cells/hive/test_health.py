"""The health tree: nested scopes, an aggregate, and times that mean a change."""

from __future__ import annotations

from cells.hive import Health, HealthTree, Level, Readiness


def test_scopes_nest_and_report_parents_first() -> None:
    health = Health()
    health.scope("speaker").ok("2 sessions")
    health.scope("speaker").scope("tor-1").degraded("connection refused")
    health.scope("http").ok()
    assert [("/".join(s.path), s.level) for s in health.report()] == [
        ("speaker", Level.OK),
        ("speaker/tor-1", Level.DEGRADED),
        ("http", Level.OK),
    ]
    assert health.level() is Level.DEGRADED
    assert health.scope("http").level() is Level.OK


def test_the_time_is_that_of_the_last_change() -> None:
    now = [100.0]
    health = Health(clock=lambda: now[0])
    health.ok("fine")
    now[0] = 200.0
    health.ok("fine")
    assert health.status is not None
    assert health.status.time.timestamp() == 100
    health.degraded("not fine")
    assert health.status.time.timestamp() == 200


def test_stopped_does_not_degrade_and_no_report_is_ok() -> None:
    health = Health()
    assert health.level() is Level.OK
    health.scope("a").stopped()
    assert health.level() is Level.STOPPED
    health.scope("b").ok()
    assert health.level() is Level.OK


def test_a_removed_scope_is_deleted_and_may_be_created_again() -> None:
    health = Health()
    old = health.scope("tor-1")
    old.degraded("refused")
    old.remove()
    assert list(health.report()) == []
    health.scope("tor-1").ok()
    old.remove()
    assert [s.level for s in health.report()] == [Level.OK]


def test_levels_that_change_are_emitted_and_messages_are_not() -> None:
    tree = HealthTree()
    emitted: list[tuple[int, list[Level]]] = []
    tree.changes.of_levels.subscribe(
        lambda number: emitted.append((number, [status.level for status in tree.report()]))
    )
    scope = tree.scope("apply")
    scope.ok("1 object")
    scope.ok("2 objects")
    scope.degraded("refused")
    scope.degraded("timed out")
    scope.remove()
    assert emitted == [(1, [Level.OK]), (2, [Level.DEGRADED]), (3, [])]
    assert tree.changes.levels == 3


def test_messages_are_capped() -> None:
    health = Health()
    health.degraded("x" * 10_000)
    assert health.status is not None
    assert len(health.status.message) == 512


def test_readiness_waits_for_every_gate() -> None:
    readiness = Readiness()
    synced = readiness.gate("sync", "the first pass over the manifests")
    applied = readiness.gate("apply", "the first complete apply round")
    assert not readiness.ready
    synced()
    assert readiness.waiting() == {"apply": "the first complete apply round"}
    applied()
    applied()
    assert readiness.ready
    assert readiness.gates() == {"sync": True, "apply": True}


def test_a_callback_that_is_registered_after_the_last_gate_is_called_at_once() -> None:
    readiness = Readiness()
    calls: list[str] = []
    opened = readiness.gate("sync", "the first pass over the manifests")
    readiness.when_ready(lambda: calls.append("before"))
    assert calls == []
    opened()
    assert calls == ["before"]
    readiness.when_ready(lambda: calls.append("after"))
    assert calls == ["before", "after"]


def test_a_program_serves_with_the_first_peer_or_when_it_is_ready() -> None:
    for begin in ("serving", "ready"):
        readiness = Readiness()
        calls: list[str] = []
        opened = readiness.gate("peers", "the initial table of every peer")
        readiness.when_serving(lambda calls=calls: calls.append("before"))  # type: ignore[misc]
        assert calls == []
        (readiness.serving if begin == "serving" else opened)()
        assert calls == ["before"]
        readiness.when_serving(lambda calls=calls: calls.append("after"))  # type: ignore[misc]
        opened()
        readiness.serving()
        assert calls == ["before", "after"]
