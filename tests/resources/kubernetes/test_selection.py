"""Which objects a program requests: of nodes, and which Secrets."""

from __future__ import annotations

from resources.core.kinds import NODE, SECRET
from resources.kubernetes.selection import Reading, Selection, of_node

NAMED = ("kube-system", "antrea-bgp-passwords")


def parts(reading: Reading) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return namespace and query of each list of Secrets."""
    found = reading.selections[SECRET.name].parts
    return [(namespace, selection.parameters) for namespace, selection in found]


def test_a_selection_of_everything_is_one_list() -> None:
    assert [(namespace, one.parameters) for namespace, one in Selection().parts] == [("", [])]


def test_a_secret_of_a_name_is_listed_by_a_field_selector() -> None:
    reading = of_node([NODE], "n1", ["waggle"], [NAMED])
    assert SECRET in reading.kinds
    query = [("fieldSelector", "metadata.name=antrea-bgp-passwords")]
    assert parts(reading) == [("kube-system", query)]


def test_beside_the_secrets_of_a_namespace() -> None:
    query = [("fieldSelector", "metadata.name=antrea-bgp-passwords")]
    reading = of_node([NODE, SECRET], "n1", ["waggle"], [NAMED])
    assert parts(reading) == [("waggle", []), ("kube-system", query)]


def test_within_the_secrets_of_its_namespace() -> None:
    assert parts(of_node([NODE, SECRET], "n1", ["kube-system"], [NAMED])) == [("kube-system", [])]


def test_without_a_dialect_that_needs_them_no_secret_is_read() -> None:
    reading = of_node([NODE], "n1", ["waggle"])
    assert SECRET not in reading.kinds
    assert SECRET.name not in reading.selections
