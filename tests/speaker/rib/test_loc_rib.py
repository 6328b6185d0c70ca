"""The Loc-RIB against a model: a dictionary of dictionaries, and changes that can be replayed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.attribute import PathAttributes
from speaker.iana import Afi
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
    """Compare a table with what it has to be, in every way in which it can be asked."""
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
    return expected


@given(st.lists(STEP, max_size=25))
def test_changes_replayed_give_the_table_and_the_table_is_the_models(
    steps: list[Step],
) -> None:
    rib = LocRib()
    model: dict[bytes, dict[Source, Path]] = {}
    told: dict[bytes, Path] = {}

    def take() -> None:
        for old, new, nlri in rib.take_changes():
            for prefix in nlri:
                # What is told as having been is what was told before.
                assert told.get(prefix) is old
                if new is None:
                    del told[prefix]
                else:
                    told[prefix] = new

    def forget() -> None:
        # Nobody listens: who comes later is told the table as it is then.
        rib.discard_changes()
        told.clear()
        told.update((nlri, paths[0]) for nlri, paths in rib.items())

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
            taken = rib.announce_new([path] * len(fields), octets, Afi.IPV4)
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
    assert told == check(rib, model)


def test_what_comes_and_goes_between_two_looks_is_not_told() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES)
    rib.announce(PATHS[0][0], PREFIXES)
    assert rib.take_changes() == []


def test_a_worse_path_changes_nothing_that_is_told() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    rib.announce(PATHS[1][1], PREFIXES)
    assert rib.take_changes() == []
    rib.withdraw(SOURCES[0], PREFIXES[:1])
    ((old, new, nlri),) = rib.take_changes()
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
def test_a_field_that_is_not_as_easy_as_that_changes_nothing(field: bytes, why: str) -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    for fields in ([field], [field, b"\x10\x0a\x02"]):
        assert rib.announce_new([PATHS[1][0]] * len(fields), fields, Afi.IPV4) == (0, 0)
    assert not rib.changed
    assert rib.prefixes() == PREFIXES


@pytest.mark.parametrize("others", [[], [b"\x10\x0a\x03", b"\x10\x0a\x04"]])
def test_bits_behind_the_length_of_a_prefix_in_a_field_are_cleared(others: list[bytes]) -> None:
    rib = LocRib()
    fields = [*others, b"\x18\x0a\x00\x01\x17\x0a\x01\x01"]
    assert rib.announce_new([PATHS[0][0]] * len(fields), fields, Afi.IPV4)[0] == len(fields)
    assert rib.prefixes() == [*others, b"\x18\x0a\x00\x01", b"\x17\x0a\x01\x00"]


def test_a_message_that_does_not_withdraw_all_of_one_path_changes_what_it_names() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES[:3])
    rib.announce(PATHS[0][1], PREFIXES[3:])
    rib.take_changes()
    gone = [PREFIXES[1], b"\x08\x63", PREFIXES[1], PREFIXES[3]]
    assert rib.withdraw(SOURCES[0], gone) == 2
    assert set(rib.prefixes()) == {PREFIXES[0], PREFIXES[2], PREFIXES[4]}
    assert sorted(prefix for _, _, nlri in rib.take_changes() for prefix in nlri) == [
        PREFIXES[1],
        PREFIXES[3],
    ]


def test_prefixes_that_are_said_again_with_their_path_are_not_new() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    assert rib.announce_new([PATHS[0][0]], [b"".join(PREFIXES)], Afi.IPV4) == (0, 0)
    assert not rib.changed


def test_fields_are_taken_until_one_is_not_new() -> None:
    rib = LocRib()
    paths = [PATHS[0][0], PATHS[0][1], PATHS[0][0]]
    fields = [b"\x10\x0a\x01\x10\x0a\x02", b"\x10\x0a\x02", b"\x10\x0a\x03"]
    assert rib.announce_new(paths, fields, Afi.IPV4) == (1, 2)
    assert rib.prefixes() == [b"\x10\x0a\x01", b"\x10\x0a\x02"]
    assert rib.best(b"\x10\x0a\x02") is PATHS[0][0]


def test_a_field_is_cut_for_who_asks_and_changes_that_wait_keep_their_order() -> None:
    rib = LocRib()
    new = [b"\x18\x0a\x00\x01", b"\x00", b"\x20\x0a\x00\x00\x01"]
    assert rib.announce_new([PATHS[0][0]], [b"".join(new)], Afi.IPV4) == (1, 3)
    rib.withdraw(SOURCES[0], new[:1])
    assert rib.announce_new([PATHS[0][0]], [b"\x10\x0a\x01"], Afi.IPV4) == (0, 0)
    ((old, now, told), (_, gone, withdrawn)) = rib.take_changes()
    assert (old, now, list(told), len(told)) == (None, PATHS[0][0], new, 3)
    assert (told[1], told[1:]) == (new[1], new[1:])
    assert (gone, withdrawn) == (None, new[:1])


def test_however_many_messages_there_are_few_are_kept_whole() -> None:
    """Each is compared with those before it: the end of a session withdraws them all at once."""
    rib = LocRib()
    many = [bytes((16, n >> 8, n & 255)) for n in range(2000)]
    paths = {prefix: Path(PathAttributes(med=n), SOURCES[0]) for n, prefix in enumerate(many)}
    for prefix, path in paths.items():
        rib.announce(path, [prefix])
    rib.take_changes()
    for prefix in many:
        rib.withdraw(SOURCES[0], [prefix])
        assert len(rib._moved) <= 32
    gone = {prefix: old for old, new, nlri in rib.take_changes() for prefix in nlri if new is None}
    assert gone == paths


def test_a_new_prefix_is_told_beside_withdrawals_that_are_kept_whole() -> None:
    """What one peer says of a prefix does not wait for another's flood, looked at one by one."""
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES[:3])
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES[:3])
    rib.announce(PATHS[1][0], PREFIXES[3:])
    assert rib.take_changes() == [
        (None, PATHS[1][0], PREFIXES[3:]),
        (PATHS[0][0], None, PREFIXES[:3]),
    ]


def test_a_prefix_that_was_just_withdrawn_is_not_new() -> None:
    rib = LocRib()
    rib.announce(PATHS[0][0], PREFIXES[:2])
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES[:2])
    rib.announce(PATHS[1][0], PREFIXES[1:2])
    assert rib.take_changes() == [
        (PATHS[0][0], None, PREFIXES[:1]),
        (PATHS[0][0], PATHS[1][0], PREFIXES[1:2]),
    ]


def test_few_are_told_beside_as_each_is_compared_with_all() -> None:
    rib = LocRib()
    many = [bytes((16, n >> 8, n & 255)) for n in range(20)]
    rib.announce(PATHS[0][0], PREFIXES)
    rib.take_changes()
    rib.withdraw(SOURCES[0], PREFIXES)
    for prefix in many:
        rib.announce(PATHS[1][0], [prefix])
        assert len(rib._new) <= 8 or not rib._moved
    changes = rib.take_changes()
    told = {prefix: (old, new) for old, new, nlri in changes for prefix in nlri}
    assert told == {
        **dict.fromkeys(PREFIXES, (PATHS[0][0], None)),
        **dict.fromkeys(many, (None, PATHS[1][0])),
    }
