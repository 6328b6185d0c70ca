"""A run of plain UPDATEs has the effect of its UPDATEs one by one."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import MaximumPrefixes, PrefixRule
from speaker.engine.inputs import BytesReceived
from speaker.peer.actions import Action
from tests.speaker.raw import ATTRIBUTES, INSTANCE, Raw, update
from tests.support.examples import examples

PREFIXES = st.lists(st.integers(0, 7).map(lambda n: bytes((24, 10, 1, n))), min_size=1, max_size=3)
NLRI = PREFIXES.map(b"".join)
LONG_PATH = bytes.fromhex("4001010040020a02020000fdea0000fdeb4003040a000002")
BAD_ORIGIN = bytes.fromhex("400101074002060201" + "0000fdea" + "4003040a000002")
OWN_AS = bytes.fromhex("4001010040020a02020000fdea0000fde94003040a000002")
UPDATES = st.one_of(
    st.builds(update, st.sampled_from([ATTRIBUTES, LONG_PATH]), NLRI),
    st.builds(update, st.just(b""), st.just(b""), NLRI),
    st.builds(update, st.sampled_from([ATTRIBUTES, BAD_ORIGIN, OWN_AS]), NLRI, NLRI),
    st.just(update(b"")),
)
RUNS = st.lists(st.lists(UPDATES, min_size=1, max_size=8).map(b"".join), max_size=5)
SETTINGS = st.sampled_from(
    [
        {},
        {"import_": "none"},
        {"import_": (PrefixRule("10.1.0.0/22", 24, 24),)},
        {"maximum_prefixes": (MaximumPrefixes(4),)},
        {"maximum_prefixes": (MaximumPrefixes(3, warning_only=True),)},
    ]
)


class NoFastPath:
    """Leaves every UPDATE to `RouteExchange.update`."""

    def receive(self, bodies: Sequence[bytes], start: int) -> int:
        del bodies, start
        return 0


def outcome(
    runs: list[bytes], options: dict[str, object], *, fast: bool
) -> tuple[list[list[Action]], dict[str, str]]:
    """Return the actions for each run, and checksums of the state."""
    raw = Raw(**options).to_established()
    updates = raw.engine.instance(INSTANCE).peer("p").connections.primary.updates
    if not fast and updates.handler is not None:
        updates.start(NoFastPath(), updates.handler)
    actions = []
    for run in runs:
        raw.now += 1
        actions.append(raw.give(BytesReceived(raw.connection, run)))
    state = raw.engine.digest(raw.now)
    # A table's revision counts its writes, of which a run makes one.
    del state["tables"]
    return actions, state


@settings(max_examples=examples(200), deadline=None)
@given(RUNS, SETTINGS)
def test_a_run_of_plain_updates_equals_its_updates_one_by_one(
    runs: list[bytes], options: dict[str, object]
) -> None:
    assert outcome(runs, options, fast=True) == outcome(runs, options, fast=False)
