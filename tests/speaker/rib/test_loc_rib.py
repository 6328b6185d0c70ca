"""The Loc-RIB against a model, its changes replayed, and its fast path against its slow path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.attribute import PathAttributes
from speaker.iana import Afi
from speaker.nlri import NlriFields
from speaker.rib.decision import best
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source

SOURCES = [Source(f"s{n}", address=bytes((10, 0, 0, n)), router_id=n, ebgp=True) for n in range(3)]
PATHS = [[Path(PathAttributes(med=med), source) for med in (1, 2)] for source in SOURCES]
PREFIXES = [bytes((8, n)) for n in range(5)]

Step = tuple[str, int, int, list[bytes]]
STEP: st.SearchStrategy[Step] = st.one_of(
    st.tuples(
        st.just("announce"), st.integers(0, 2), st.integers(0, 1),
        st.lists(st.sampled_from(PREFIXES), max_size=5),
    ),
    st.tuples(
        st.just("field"), st.integers(0, 2), st.integers(0, 1),
        st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=5),
    ),
    st.tuples(
        st.just("withdraw"), st.integers(0, 2), st.just(0),
        st.lists(st.sampled_from(PREFIXES), max_size=5),
    ),
    st.tuples(st.sampled_from(["take", "forget"]), st.just(0), st.just(0), st.just([])),
)  # fmt: skip


def in_two(nlri: list[bytes]) -> list[list[bytes]]:
    """Make one or two fields of prefixes."""
    return [nlri[:2], nlri[2:]] if nlri[2:] else [nlri]


def check(rib: LocRib, model: dict[bytes, dict[Source, Path]]) -> dict[bytes, Path]:
    """Compare a table with the model through every reading method."""
    expected = {prefix: best(list(paths.values())) for prefix, paths in model.items() if paths}
    assert {nlri: paths[0] for nlri, paths in rib.items()} == expected
    assert {nlri: set(paths) for nlri, paths in rib.items()} == {
        prefix: set(paths.values()) for prefix, paths in model.items() if paths
    }
    assert len(rib) == len(expected)
    for prefix in PREFIXES:
        assert rib.best(prefix) is expected.get(prefix)
        assert (rib.paths(prefix) or (None,))[0] is expected.get(prefix)
    grouped = {nlri: path for path, nlris in rib.best_by_path().items() for nlri in nlris}
    assert grouped == expected
    in_steps: dict[Path, list[bytes]] = {}
    assert all(rib.best_by_path_in_steps(2, in_steps))
    assert in_steps == rib.best_by_path()
    some: dict[Path, list[bytes]] = {}
    rib.add_best(PREFIXES, some)
    assert {nlri: path for path, nlris in some.items() for nlri in nlris} == expected
    return expected


@given(st.lists(STEP, max_size=25))
def test_replayed_changes_give_the_table_and_the_table_equals_the_model(
    steps: list[Step],
) -> None:
    rib = LocRib()
    model: dict[bytes, dict[Source, Path]] = {}
    advertised: dict[bytes, Path] = {}

    def take() -> None:
        for old, new, nlri in rib.take_changes().best:
            for prefix in nlri:
                # The best path before a change is the one after the change before it.
                assert advertised.get(prefix) is old
                if new is None:
                    del advertised[prefix]
                else:
                    advertised[prefix] = new

    def forget() -> None:
        # Without a peer; the next one gets the whole table.
        rib.discard_changes()
        advertised.clear()
        advertised.update((nlri, paths[0]) for nlri, paths in rib.items())

    for what, who, which, nlri in steps:
        revision = rib.revision
        if what == "announce":
            rib.announce(PATHS[who][which], nlri)
            for prefix in nlri:
                model.setdefault(prefix, {})[SOURCES[who]] = PATHS[who][which]
        elif what == "field":
            fields = in_two(nlri)
            path = PATHS[who][which]
            octets = list(map(b"".join, fields))
            taken = rib.announce_new([path] * len(fields), ipv4(octets))
            new = [prefix for field in fields[: taken[0]] for prefix in field]
            assert taken[1] == len(new)
            for prefix in new:
                assert not model.get(prefix)
                model[prefix] = {SOURCES[who]: path}
            if taken[0] == 0:
                assert rib.revision == revision
                continue
        elif what == "withdraw":
            rib.withdraw(SOURCES[who], nlri)
            for prefix in nlri:
                model.get(prefix, {}).pop(SOURCES[who], None)
        else:
            {"take": take, "forget": forget}[what]()
            assert not rib.changed
            continue
        assert rib.revision > revision
    take()
    assert advertised == check(rib, model)


def ipv4(fields: list[bytes]) -> NlriFields:
    return NlriFields(fields, Afi.IPV4)


def in_sum(rib: LocRib) -> dict[bytes, tuple[Path | None, Path | None]]:
    """Take the changes: for each prefix the best path before the first and after the last one."""
    found: dict[bytes, tuple[Path | None, Path | None]] = {}
    for old, new, nlri in rib.take_changes().best:
        for prefix in nlri:
            first, last = found.get(prefix, (old, old))
            assert last is old
            found[prefix] = (first, new)
    return {prefix: pair for prefix, pair in found.items() if pair[0] is not pair[1]}


@given(st.lists(STEP, max_size=25))
def test_fast_path_and_slow_path_agree(steps: list[Step]) -> None:
    fast, slow = LocRib(), LocRib()
    for what, who, which, nlri in steps:
        path, source = PATHS[who][which], SOURCES[who]
        if what == "announce":
            assert fast.announce(path, nlri) == slow._announce_each(path, nlri)
        elif what == "field":
            fields = in_two(nlri)
            octets = list(map(b"".join, fields))
            taken, new = fast.announce_new([path] * len(fields), ipv4(octets))
            assert new == sum(slow._announce_each(path, field) for field in fields[:taken])
            for field in fields[taken:]:
                assert fast.announce(path, field) == slow._announce_each(path, field)
        elif what == "withdraw":
            assert fast.withdraw(source, nlri) == slow._withdraw_each(source, nlri)
        else:
            assert in_sum(fast) == in_sum(slow)
        assert dict(fast.items()) == dict(slow.items())
    assert in_sum(fast) == in_sum(slow)


@given(st.lists(STEP, max_size=25))
def test_where_all_paths_are_tracked_no_change_of_any_path_is_missed(steps: list[Step]) -> None:
    rib = LocRib()
    rib.track_all_paths()
    known: dict[bytes, tuple[Path, ...]] = {}
    for what, who, which, nlri in [*steps, ("take", 0, 0, [])]:
        if what in {"announce", "field"}:
            rib.announce(PATHS[who][which], nlri)
        elif what == "withdraw":
            rib.withdraw(SOURCES[who], nlri)
        elif what == "take":
            changes = rib.take_changes()
            present = dict(rib.items())
            differing = {n for n in PREFIXES if known.get(n) != present.get(n)}
            assert differing <= changes.prefixes()
            whole = {n for _, _, part in changes.best[: changes.whole] for n in part}
            for prefix in differing - whole:
                if len(known.get(prefix, ())) > 1 and len(present.get(prefix, ())) > 1:
                    assert changes.several[prefix] is known[prefix][0]
            known = present


def test_a_change_that_is_reverted_before_it_is_taken_is_no_change() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES)
    rib.announce(PATHS[0][0], PREFIXES)
    assert rib.take_changes().best == []


def test_a_worse_path_is_no_change_of_the_best_path() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    rib.announce(PATHS[1][1], PREFIXES)
    assert rib.take_changes().best == []
    rib.withdraw(SOURCES[0], PREFIXES[:1])
    ((old, new, nlri),) = rib.take_changes().best
    assert (old, new, list(nlri)) == (PATHS[0][0], PATHS[1][1], PREFIXES[:1])


@pytest.mark.parametrize(
    ("field", "why"),
    [
        (b"\x18\x0a\x00\x01\x18\x0a\x00\x01", "a prefix that is named twice"),
        (b"\x18\x0a\x00\x01\x08\x02", "a prefix that has a path"),
        (b"\x18\x0a\x00\x01\x18\x0a\x00", "a prefix that is cut"),
        (b"\x18\x0a\x00\x01\x20", "a length and nothing else"),
        (b"\x18\x0a\x00\x01\x21\x0a\x00\x00\x01\x00", "a length that cannot be"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_that_the_fast_path_rejects_changes_nothing(field: bytes, why: str) -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    for fields in ([field], [field, b"\x10\x0a\x02"]):
        assert rib.announce_new([PATHS[1][0]] * len(fields), ipv4(fields)) == (0, 0)
    assert not rib.changed
    assert list(rib.prefixes()) == PREFIXES


@pytest.mark.parametrize("others", [[], [b"\x10\x0a\x03", b"\x10\x0a\x04"]])
def test_trailing_bits_of_a_prefix_in_a_field_are_cleared(others: list[bytes]) -> None:
    rib = LocRib()
    fields = [*others, b"\x18\x0a\x00\x01\x17\x0a\x01\x01"]
    assert rib.announce_new([PATHS[0][0]] * len(fields), ipv4(fields))[0] == len(fields)
    assert list(rib.prefixes()) == [*others, b"\x18\x0a\x00\x01", b"\x17\x0a\x01\x00"]


def test_a_withdrawal_of_mixed_paths_takes_the_slow_path() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES[:3])
    rib.announce(PATHS[0][1], PREFIXES[3:])
    rib.take_changes()
    gone = [PREFIXES[1], b"\x08\x63", PREFIXES[1], PREFIXES[3]]
    assert rib.withdraw(SOURCES[0], gone) == 2
    assert set(rib.prefixes()) == {PREFIXES[0], PREFIXES[2], PREFIXES[4]}
    assert sorted(prefix for _, _, nlri in rib.take_changes().best for prefix in nlri) == [
        PREFIXES[1],
        PREFIXES[3],
    ]


def test_neighbours_with_the_same_paths_share_their_order() -> None:
    """A second table takes one comparison for each pair of attribute sets, not for each prefix."""
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES[:3])
    rib.announce(PATHS[0][1], PREFIXES[3:])
    for source in (1, 2):
        rib.announce(PATHS[source][0], PREFIXES)
        shared = [rib.paths(prefix) for prefix in PREFIXES]
        assert len(shared[0]) == source + 1
        assert len(set(map(id, shared[:3]))) == len(set(map(id, shared[3:]))) == 1
        assert shared[0] is not shared[3]
    rib.withdraw(SOURCES[2], PREFIXES)
    assert len({id(rib.paths(prefix)) for prefix in PREFIXES}) == 2


def test_prefixes_that_are_announced_again_are_not_new() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    assert rib.announce_new([PATHS[0][0]], ipv4([b"".join(PREFIXES)])) == (0, 0)
    assert not rib.changed


def test_fields_are_installed_up_to_the_first_that_is_not_new() -> None:
    rib = LocRib()
    paths = [PATHS[0][0], PATHS[0][1], PATHS[0][0]]
    fields = [b"\x10\x0a\x01\x10\x0a\x02", b"\x10\x0a\x02", b"\x10\x0a\x03"]
    assert rib.announce_new(paths, ipv4(fields)) == (1, 2)
    assert list(rib.prefixes()) == [b"\x10\x0a\x01", b"\x10\x0a\x02"]
    assert rib.best(b"\x10\x0a\x02") is PATHS[0][0]


def test_pending_changes_keep_their_order() -> None:
    rib = LocRib()
    new = [b"\x18\x0a\x00\x01", b"\x00", b"\x20\x0a\x00\x00\x01"]
    assert rib.announce_new([PATHS[0][0]], ipv4([b"".join(new)])) == (1, 3)
    rib.withdraw(SOURCES[0], new[:1])
    assert rib.announce_new([PATHS[0][0]], ipv4([b"\x10\x0a\x01"])) == (0, 0)
    ((old, now, announced), (_, gone, withdrawn)) = rib.take_changes().best
    assert (old, now, list(announced), len(announced)) == (None, PATHS[0][0], new, 3)
    assert (announced[1], announced[1:]) == (new[1], new[1:])
    assert (gone, withdrawn) == (None, new[:1])


def test_the_number_of_whole_messages_is_bounded() -> None:
    """Each is compared with the former paths: the end of a session withdraws them all at once."""
    rib = LocRib()
    many = [bytes((16, n >> 8, n & 255)) for n in range(2000)]
    paths = {prefix: Path(PathAttributes(med=n), SOURCES[0]) for n, prefix in enumerate(many)}
    for prefix, path in paths.items():
        rib.announce(path, [prefix])
    rib.take_changes()
    for prefix in many:
        rib.withdraw(SOURCES[0], [prefix])
        assert len(rib._fast.replaced) <= 32
    gone = {
        prefix: old for old, new, nlri in rib.take_changes().best for prefix in nlri if new is None
    }
    assert gone == paths


def test_a_new_prefix_is_announced_beside_whole_withdrawals() -> None:
    """The new prefix of one peer does not wait for the flood of another, prefix by prefix."""
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES[:3])
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES[:3])
    rib.announce(PATHS[1][0], PREFIXES[3:])
    assert rib.take_changes().best == [
        (None, PATHS[1][0], PREFIXES[3:]),
        (PATHS[0][0], None, PREFIXES[:3]),
    ]


def test_a_prefix_that_was_just_withdrawn_is_not_new() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES[:2])
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES[:2])
    rib.announce(PATHS[1][0], PREFIXES[1:2])
    assert rib.take_changes().best == [
        (PATHS[0][0], None, PREFIXES[:1]),
        (PATHS[0][0], PATHS[1][0], PREFIXES[1:2]),
    ]


def test_the_number_of_announcements_beside_whole_withdrawals_is_bounded() -> None:
    rib = LocRib()
    many = [bytes((16, n >> 8, n & 255)) for n in range(20)]
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES)
    for prefix in many:
        rib.announce(PATHS[1][0], [prefix])
        assert len(rib._fast.announced) <= 8 or not rib._fast.replaced
    changes = rib.take_changes().best
    found = {prefix: (old, new) for old, new, nlri in changes for prefix in nlri}
    assert found == {
        **dict.fromkeys(PREFIXES, (PATHS[0][0], None)),
        **dict.fromkeys(many, (None, PATHS[1][0])),
    }
