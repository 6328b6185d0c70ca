"""The pools that an advertisement selects: by name, by label, and without a look at each pair."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reconcilers.metallb.pool_selection import PoolSelection
from resources.label_selectors import LabelSelector, LabelSelectorRequirement
from resources.metallb import kinds
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.ipaddresspool import IPAddressPool
from tests.reconcilers.metallb.objects import advertisement, pool

VALUES = ("a", "b", "")


def pools(*labels: dict[str, str]) -> list[IPAddressPool]:
    found = []
    for number, one in enumerate(labels):
        row = pool(f"p{number:03}", f"10.0.{number % 256}.0/24")
        row["metadata"]["labels"] = one
        found.append(kinds.IP_ADDRESS_POOL.decode(row))
    return found


def advertising(**spec: Any) -> BGPAdvertisement:  # noqa: ANN401
    found: BGPAdvertisement = kinds.BGP_ADVERTISEMENT.decode(advertisement("a", **spec))
    return found


def random_selector(rng: random.Random) -> dict[str, Any]:
    expressions = [
        {
            "key": rng.choice("xyz"),
            "operator": (operator := rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))),
            **({"values": rng.sample(VALUES, rng.randint(1, 2))} if "In" in operator else {}),
        }
        for _ in range(rng.randint(0, 2))
    ]
    labels = {rng.choice("xyz"): rng.choice(VALUES) for _ in range(rng.randint(0, 1))}
    return {"matchLabels": labels, "matchExpressions": expressions}


def test_without_names_and_selectors_all_are_selected() -> None:
    selection = PoolSelection(pools({}, {"x": "a"}))
    assert selection.of(advertising()) == ("p000", "p001")
    assert selection.of(advertising(ipAddressPools=["p001", "none"])) == ("p001",)
    assert selection.of(advertising(ipAddressPoolSelectors=[{"matchLabels": {"x": "b"}}])) == ()
    assert selection.of(advertising(ipAddressPoolSelectors=[{}])) == ("p000", "p001")


@pytest.mark.parametrize("seed", range(60))
def test_those_are_selected_whose_labels_match(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  a test
    rows = pools(
        *({key: rng.choice(VALUES) for key in "xyz" if rng.random() < 0.6} for _ in range(9))
    )
    spec: dict[str, Any] = {
        "ipAddressPoolSelectors": [random_selector(rng) for _ in range(rng.randint(1, 3))],
        "ipAddressPools": rng.sample([row.metadata.name for row in rows], rng.randint(0, 2)),
    }
    row = advertising(**spec)
    expected = [
        one.metadata.name
        for one in rows
        if one.metadata.name in row.spec.ip_address_pools
        or any(s.matches(one.metadata.labels) for s in row.spec.ip_address_pool_selectors)
    ]
    assert list(PoolSelection(rows).of(row)) == expected


def test_no_pair_of_a_selector_and_a_pool_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pools(*({"x": f"v{number}"} for number in range(300)))
    calls: list[object] = []
    for kind in (LabelSelector, LabelSelectorRequirement):
        monkeypatch.setattr(kind, "matches", lambda *given: calls.append(given))
    selection = PoolSelection(rows)
    for number in range(300):
        one = {"key": "x", "operator": "NotIn", "values": [f"v{number}"]}
        spec = {"ipAddressPoolSelectors": [{"matchExpressions": [one]}]}
        assert len(selection.of(advertising(**spec))) == 299
    assert calls == []
