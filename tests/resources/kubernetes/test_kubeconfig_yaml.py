"""A kubeconfig is parsed by the C parser, with the values and errors of the other one."""

from __future__ import annotations

import io

import pytest
import yaml

from resources.kubernetes import client_library, kubeconfig_yaml


def test_the_library_parses_with_it() -> None:
    assert client_library.load().config.kube_config.yaml is kubeconfig_yaml


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 0x10, yes, 2026-01-01, ~]\n'b': {c: d}\ne: |\n  f\n",
        "\ufeffkind: Config\nname: ä\n",
        "a: &a [*a]\n",
        "",
        "{\n",
        "a:\tb\n- c\n",
        "\x01",
        "a: !!python/object:os.system {}\n",
        "a: 1\n---\nb: 2\n",
    ],
    ids=["types", "order mark", "alias", "empty", "open", "tab", "control", "tag", "documents"],
)
@pytest.mark.parametrize("as_file", [False, True])
def test_values_and_errors_match_the_python_parser(text: str, *, as_file: bool) -> None:
    try:
        wanted: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        wanted = error
    try:
        found: object = kubeconfig_yaml.safe_load(io.StringIO(text) if as_file else text)
    except yaml.YAMLError as error:
        found = error
    assert (type(found), str(found)) == (type(wanted), str(wanted))


@pytest.mark.parametrize("indicator", ["[", "{", "- ", "? ", "{a: "])
def test_nesting_by_which_the_c_parser_would_end_the_process_is_an_error(indicator: str) -> None:
    with pytest.raises((RecursionError, yaml.YAMLError)):
        kubeconfig_yaml.safe_load(indicator * 50_000)


def test_a_kubeconfig_is_parsed_by_the_c_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "safe_load")
    entries = "".join(f"- name: c{n}\n  cluster: {{server: x}}\n" for n in range(500))
    assert len(kubeconfig_yaml.safe_load(f"clusters:\n{entries}")["clusters"]) == 500
