"""RFC 4271 section 9.1.2, rule by rule, its independence of the order of arrival, and equal paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.api import UNREACHABLE
from speaker.attribute import AS_SEQUENCE, AS_SET, PathAttributes, Segment
from speaker.rib.decision import Reason, best, equal_paths, explain, order
from speaker.rib.local_routes import LOCAL
from speaker.rib.path import LLGR_STALE, Path, Source


def path(
    *asns: int,
    origin: int = 0,
    med: int | None = None,
    preference: int | None = None,
    ebgp: bool = True,
    router_id: int = 1,
    address: bytes = b"\x0a\x00\x00\x01",
    local: bool = False,
    imported: bool = False,
    next_hop: bytes = b"",
) -> Path:
    source = LOCAL
    if imported or not local:
        source = Source(
            "p",
            address=b"" if local else address,
            router_id=0 if local else router_id,
            ebgp=ebgp and not local,
            imported_from="red" if imported else None,
        )
    as_path = (Segment(AS_SEQUENCE, asns),) if asns else ()
    return Path(
        PathAttributes(
            origin=origin,
            as_path=as_path,
            med=med,
            local_preference=preference,
            next_hop=next_hop,
        ),
        source,
    )


NEAR, FAR, LOST = b"\x0a\0\0\x01", b"\x0a\0\0\x02", b"\x0a\0\0\x03"
METRICS = {NEAR: 10, FAR: 20, LOST: UNREACHABLE}


def metric(of: Path) -> int:
    """The IGP metric of a path's next hop; 0 for an unknown one."""
    return METRICS.get(of.attributes.next_hop, 0)


def identified(path_id: int) -> Path:
    source = Source("p", address=b"\x0a\0\0\x01").with_path_id(path_id, path_id + 1)
    return Path(PathAttributes(as_path=(Segment(AS_SEQUENCE, (1,)),)), source)


def reflected(*clusters: bytes, originator: bytes) -> Path:
    attributes = PathAttributes(
        as_path=(Segment(AS_SEQUENCE, (1,)),), originator_id=originator, cluster_list=clusters
    )
    return Path(attributes, Source("rr", address=b"\x0a\0\0\x09", router_id=9, ebgp=False))


STALE = Path(
    PathAttributes(communities=(LLGR_STALE,), local_preference=900), Source("p", address=b"1")
)
RULES = [
    # Section, the better one, the other one, and why not that one.
    ("waggle", path(local=True), path(1, preference=900), Reason.LOCAL),
    ("RFC 9494 4.3", path(1), STALE, Reason.LONG_LIVED_STALE),
    ("9.1.2", path(1, 2), path(1, preference=900, next_hop=LOST), Reason.UNREACHABLE),
    ("9.1.1", path(1, 2, 3, preference=101), path(1), Reason.LOCAL_PREFERENCE),
    ("9.1.2.2 a", path(1, 2), path(1, 2, 3), Reason.AS_PATH),
    ("9.1.2.2 b", path(1, origin=0), path(1, origin=1), Reason.ORIGIN),
    ("9.1.2.2 b", path(1, origin=1), path(1, origin=2), Reason.ORIGIN),
    ("9.1.2.2 c", path(1, med=5), path(1, med=6), Reason.MED),
    ("9.1.2.2 c", path(1), path(1, med=1), Reason.MED),
    ("9.1.2.2 d", path(1, router_id=9), path(2, ebgp=False, router_id=1), Reason.EBGP),
    ("9.1.2.2 e", path(1, next_hop=NEAR, router_id=9), path(2, next_hop=FAR), Reason.IGP_METRIC),
    ("9.1.2.2 e", path(1, router_id=9), path(2, next_hop=NEAR), Reason.IGP_METRIC),
    ("9.1.2.2 f", path(1, router_id=1), path(2, router_id=2), Reason.ROUTER_ID),
    (
        "RFC 4456 9",
        reflected(b"1111", originator=b"\0\0\0\1"),
        reflected(b"1111", originator=b"\0\0\0\2"),
        Reason.ROUTER_ID,
    ),
    (
        "RFC 4456 9",
        reflected(b"1111", originator=b"\0\0\0\1"),
        reflected(b"1111", b"2222", originator=b"\0\0\0\1"),
        Reason.CLUSTER_LIST,
    ),
    (
        "9.1.2.2 g",
        path(1, address=b"\x0a\0\0\x01"),
        path(2, address=b"\x0a\0\0\x02"),
        Reason.ADDRESS,
    ),
    ("waggle", path(1), path(1, imported=True), Reason.IMPORTED),
    ("waggle", path(local=True), path(local=True, imported=True), Reason.IMPORTED),
    ("RFC 7911", identified(1), identified(2), Reason.EQUAL),
]


@pytest.mark.parametrize(
    ("section", "winner", "loser", "reason"),
    RULES,
    ids=[f"{section}: {reason.value}" for section, _, _, reason in RULES],
)
def test_the_first_rule_that_differs_decides_and_is_the_reason(
    section: str, winner: Path, loser: Path, reason: Reason
) -> None:
    del section
    assert best([loser, winner], metric) is winner
    assert explain(loser, [loser, winner], metric) is reason
    assert explain(winner, [loser, winner], metric) is Reason.BEST


def test_there_is_a_case_for_every_reason() -> None:
    assert {reason for *_, reason in RULES} | {Reason.BEST} == set(Reason)


def test_med_is_not_compared_between_neighbouring_ases() -> None:
    cheap, dear = path(1, med=1, router_id=9), path(2, med=500, router_id=1)
    assert best([cheap, dear]) is dear


def test_an_as_set_is_one_hop() -> None:
    attributes = PathAttributes(as_path=(Segment(AS_SEQUENCE, (1,)), Segment(AS_SET, (2, 3, 4))))
    short = Path(attributes, Source("a", address=b"\x01"))
    assert best([path(1, 2, 3), short]) is short


def test_rfc4271_9_1_2_2_e_without_metrics_all_next_hops_are_equal() -> None:
    near, far = path(1, next_hop=NEAR, router_id=2), path(2, next_hop=FAR, router_id=1)
    assert best([near, far]) is far
    assert explain(near, [near, far]) is Reason.ROUTER_ID


def test_rfc4271_9_1_2_a_path_without_a_reachable_next_hop_is_not_equal_to_others() -> None:
    one, two = path(1, 2, router_id=8), path(1, 2, router_id=9)
    lost, shorter = path(1, 2, next_hop=LOST), path(1, next_hop=LOST)
    assert equal(lost, two, one) == (one, two)
    assert order([lost, one], metric) == (one, lost)
    # Where no next hop is reachable the other rules decide.
    assert best([lost, shorter], metric) is shorter
    assert explain(lost, [lost, shorter], metric) is Reason.AS_PATH


def test_rfc4271_9_1_2_2_e_ebgp_precedes_the_metric() -> None:
    near, far = path(1, next_hop=NEAR, ebgp=False), path(2, next_hop=FAR)
    assert best([near, far], metric) is far


def equal(*paths: Path, relax: bool = False, maximum: int = 64) -> tuple[Path, ...]:
    return equal_paths(paths, maximum=maximum, relax=relax, metric=metric)


AFTER_ROUTER_ID = {
    Reason.ROUTER_ID,
    Reason.CLUSTER_LIST,
    Reason.ADDRESS,
    Reason.IMPORTED,
    Reason.EQUAL,
}


@pytest.mark.parametrize(
    ("section", "winner", "loser", "reason"),
    RULES,
    ids=[f"{section}: {reason.value}" for section, _, _, reason in RULES],
)
def test_rfc4271_9_1_2_2_paths_are_equal_up_to_the_router_id(
    section: str, winner: Path, loser: Path, reason: Reason
) -> None:
    """Each step on its own: the steps before the router ID separate two paths, the others do not."""
    del section
    found = equal(loser, winner, relax=True)
    assert found == ((winner, loser) if reason in AFTER_ROUTER_ID else (winner,))


def test_paths_of_other_ases_are_equal_only_where_as_paths_are_relaxed() -> None:
    first, same, other = path(1, 9), path(1, 9, router_id=2), path(2, 9, router_id=3)
    longer = path(2, 3, 9, router_id=4)
    assert equal(other, same, longer, first) == (first, same)
    assert equal(other, same, longer, first, relax=True) == (first, same, other)


def test_meds_are_compared_within_one_neighbour_as() -> None:
    first, higher, other = path(1, med=5), path(1, med=6, router_id=2), path(2, med=7, router_id=3)
    assert equal(first, higher, other, relax=True) == (first, other)


def test_the_equal_paths_are_bounded_and_the_best_of_them_remain() -> None:
    paths = [path(1, router_id=n) for n in (4, 2, 3, 1)]
    assert equal(*paths, maximum=2) == (paths[3], paths[1])
    assert equal(*paths, maximum=1) == (paths[3],)
    assert equal(paths[0]) == (paths[0],)


PATHS = st.builds(
    path,
    st.integers(1, 3),
    next_hop=st.sampled_from([b"", NEAR, FAR]),
    origin=st.integers(0, 2),
    med=st.sampled_from([None, 1, 2]),
    preference=st.sampled_from([None, 100, 200]),
    ebgp=st.booleans(),
    router_id=st.integers(1, 3),
    address=st.binary(min_size=4, max_size=4),
)


@given(st.lists(PATHS, min_size=1, max_size=6, unique_by=lambda p: p.source.address), st.data())
def test_the_best_path_does_not_depend_on_the_order_of_arrival(
    paths: list[Path], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(paths))
    assert best(paths, metric) is best(shuffled, metric)
    ranked = order(shuffled, metric)
    assert ranked[0] is best(paths, metric)
    assert set(ranked) == set(paths)
    assert [p for p in paths if explain(p, paths, metric) is Reason.BEST] == [ranked[0]]
    for relax in (False, True):
        found = equal(*shuffled, relax=relax)
        assert found == equal(*paths, relax=relax)
        assert found[0] is ranked[0]
        # One of equal paths is as good as the others, whichever is first by the router ID.
        assert set(found) <= set(equal(*paths, relax=True))
