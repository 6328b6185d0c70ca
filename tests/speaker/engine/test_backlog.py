"""The backlog of a stream: each prefix once, the newest and the oldest first."""

from __future__ import annotations

from speaker.attribute import PathAttributes
from speaker.engine.backlog import Backlog
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from speaker.rib.path import Path, Source

FIRST, SECOND = (Path(PathAttributes(med=med), Source("p", address=b"1")) for med in (1, 2))
PREFIXES = [bytes((8, n)) for n in range(10)]


def test_of_a_prefix_the_first_path_remains_in_both_halves() -> None:
    backlog = Backlog()
    backlog.add(IPV4_UNICAST, [(nlri, FIRST) for nlri in PREFIXES[:3]])
    backlog.add(IPV4_UNICAST, [(PREFIXES[0], SECOND)])
    assert backlog.take(1) == {IPV4_UNICAST: {PREFIXES[2]: FIRST}}
    backlog.add(IPV4_UNICAST, [(PREFIXES[0], SECOND), (PREFIXES[5], None)])
    assert len(backlog) == 3
    assert backlog.take(10) == {
        IPV4_UNICAST: {PREFIXES[0]: FIRST, PREFIXES[1]: FIRST, PREFIXES[5]: None}
    }
    assert not backlog


def test_half_of_what_is_taken_are_the_newest_and_half_the_oldest() -> None:
    backlog = Backlog()
    backlog.add(IPV4_UNICAST, [(nlri, None) for nlri in PREFIXES[:6]])
    assert backlog.take(1)
    backlog.add(IPV4_UNICAST, [(nlri, None) for nlri in PREFIXES[6:]])
    ((_, taken),) = backlog.take(2).items()
    assert set(taken) == {PREFIXES[4], PREFIXES[9]}
    assert backlog.swaps == 1
    # The older half is worked off before the newer one takes its place.
    backlog.add(IPV4_UNICAST, [(nlri, None) for nlri in (PREFIXES[5], PREFIXES[9])])
    while backlog.swaps == 1:
        oldest = backlog.is_disjoint(IPV4_UNICAST, PREFIXES[:4])
        backlog.add(IPV4_UNICAST, [(PREFIXES[9], None)])
        backlog.take(2)
    assert oldest


def test_urgent_prefixes_of_one_family_do_not_delay_another_family() -> None:
    backlog = Backlog()
    backlog.add_urgent(IPV4_UNICAST, [(nlri, None) for nlri in PREFIXES])
    backlog.add_urgent(IPV6_UNICAST, [(PREFIXES[0], FIRST)])
    taken = backlog.take_urgent(4)
    assert taken[IPV6_UNICAST] == {PREFIXES[0]: FIRST}
    assert list(taken[IPV4_UNICAST]) == PREFIXES[:3], "the oldest ones"
    assert len(backlog) == 7


def test_prefixes_are_found_and_discarded_in_both_halves_and_by_family() -> None:
    backlog = Backlog()
    backlog.add(IPV4_UNICAST, [(nlri, None) for nlri in PREFIXES[:2]])
    backlog.take(1)
    backlog.add(IPV4_UNICAST, [(PREFIXES[3], None)])
    for nlri in (PREFIXES[0], PREFIXES[3]):
        assert not backlog.is_disjoint(IPV4_UNICAST, [PREFIXES[9], nlri])
        assert backlog.is_disjoint(IPV6_UNICAST, [nlri])
        backlog.discard(IPV6_UNICAST, [nlri])
        backlog.discard(IPV4_UNICAST, [nlri])
        assert backlog.is_disjoint(IPV4_UNICAST, [nlri])
    assert not backlog
    backlog.add(IPV4_UNICAST, [])
    assert not backlog
