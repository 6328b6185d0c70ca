"""The options of the FRR-k8s dialect."""

import pytest

from reconcilers.frrk8s.options import Frrk8sOptions
from resources.option_declarations import InvalidOption


def test_blocked_prefixes_are_canonical_and_each_once() -> None:
    given = Frrk8sOptions(always_block=("fd00::1/8, 10.96.1.2/12", "10.96.0.0/12"))
    assert given.blocked == ("10.96.0.0/12", "fd00::/8")


@pytest.mark.parametrize("text", ["10.96.0.1", "10.96.0.0/33", "10.96.0.0/255.240.0.0", "all"])
def test_what_is_not_a_prefix_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="--always-block"):
        Frrk8sOptions(always_block=(text,))
