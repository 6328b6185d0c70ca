"""The flags of commands that compile manifests: an agent's settings, with its defaults."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from reconcilers.cilium.options import CiliumOptions
from reconcilers.kernel.options import FibOptions
from resources.option_declarations import InvalidOption
from waggle.dialects import DIALECTS
from waggle.intent_flags import (
    add_intent_flags,
    add_option_flags,
    given_intent_flags,
    given_options,
    offline_settings,
)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", default="n1")
    add_intent_flags(parser, DIALECTS)
    add_option_flags(parser, "kernel", FibOptions)
    return parser.parse_args(words)


def cilium(*words: str) -> Any:  # noqa: ANN401  the options of a dialect
    return offline_settings(parsed(*words), DIALECTS).dialects["cilium"]


@pytest.mark.parametrize(
    ("words", "namespace"),
    [([], "kube-system"), (["--secrets-namespace", "bgp"], "bgp"), (["--secrets-namespace="], "")],
)
def test_secrets_are_in_the_namespace_of_the_flag(words: list[str], namespace: str) -> None:
    settings = offline_settings(parsed(*words), DIALECTS)
    assert (settings.node, settings.secrets_namespace) == ("n1", namespace)


def test_without_flags_each_setting_has_the_default_of_an_agent() -> None:
    settings = offline_settings(parsed(), DIALECTS)
    assert settings.dialects == {entry.name: entry.options() for entry in DIALECTS}
    assert given_options(parsed(), "kernel", FibOptions) == FibOptions()
    assert given_intent_flags(parsed(), DIALECTS) == []


def test_the_flags_that_are_given_are_known_by_their_names() -> None:
    args = parsed("--secrets-namespace=", "--no-service-endpoints-routable", "false")
    assert given_intent_flags(args, DIALECTS) == [
        "--secrets-namespace",
        "--no-service-endpoints-routable",
    ]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--no-service-endpoints-routable"], True),
        (["--no-service-endpoints-routable", "true"], True),
        (["--no-service-endpoints-routable", "false"], False),
        (["--no-service-endpoints-routable=false"], False),
    ],
)
def test_a_flag_without_a_value_is_true(words: list[str], value: bool) -> None:
    assert cilium(*words).no_service_endpoints_routable is value


def test_a_flag_of_several_values_may_be_repeated_and_has_commas() -> None:
    words = ("--node-address", "192.0.2.0/24,2001:db8::/64", "--node-address", "198.51.100.7")
    assert cilium(*words) == CiliumOptions(
        node_address=("192.0.2.0/24", "2001:db8::/64", "198.51.100.7")
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("--peering-policies", "all"),
            "--peering-policies: is none of exclusive, first, translate: 'all'",
        ),
        (("--no-service-endpoints-routable", "x"), "--no-service-endpoints-routable: "),
        (("--fib", "maybe"), "--fib: is none of auto, true, false: 'maybe'"),
    ],
)
def test_a_wrong_value_names_the_flag_and_what_it_may_be(
    words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)
    assert f"argument {text}" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--node-address", "--router-id-allocation-ip-pool"])
def test_a_prefix_with_host_bits_is_named_with_the_prefix_that_it_is_in(flag: str) -> None:
    with pytest.raises(InvalidOption, match=r"host bits set; the prefix is 10\.0\.0\.0/24"):
        cilium(flag, "10.0.0.1/24")
