"""The name of a dialect is part of flags, variables and keys: it is checked with the class."""

from __future__ import annotations

from typing import ClassVar

import pytest

from reconcilers.dialect import Dialect


@pytest.mark.parametrize("word", ["Bees", "bee-hive", "bee_hive", "2bees", "", "bee\n"])
def test_a_dialect_with_a_name_that_no_flag_can_have_is_refused(word: str) -> None:
    with pytest.raises(
        ValueError, match=r"BadlyNamed: name: .* does not match \[a-z\]\[a-z0-9\]\*"
    ):

        class BadlyNamed(Dialect):
            name: ClassVar[str] = word


def test_a_base_class_of_dialects_needs_no_name() -> None:
    class Base(Dialect):
        pass

    class Bees(Base):
        name: ClassVar[str] = "bees2"

    assert Bees.name == "bees2"
