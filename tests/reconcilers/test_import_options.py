"""`--cilium-import`, `--antrea-import`: what peers accept, and what would stand in the kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconcilers.antrea.options import AntreaOptions
from reconcilers.cilium.options import CiliumOptions
from resources.option_declarations import InvalidOption
from waggle.__main__ import main

EXAMPLES = Path(__file__).parents[2] / "examples"
CILIUM, ANTREA = EXAMPLES / "quickstart", EXAMPLES / "antrea"
ROUTER = "10.88.0.1"
ANNOUNCED = ("10.1.0.0/16", "10.1.2.0/24", "10.0.0.0/8", "192.0.2.0/24", "0.0.0.0/0")


def rendered(
    manifests: Path, directory: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Render an example whose router is not on the loopback interface."""
    for file in manifests.iterdir():
        (directory / file.name).write_text(file.read_text().replace("127.0.0.2", ROUTER))
    assert main(["render", "-f", str(directory), "--node", "node-1", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def installed(document: dict[str, Any]) -> set[str]:
    return {route["prefix"] for route in document["kernel"]}


@pytest.mark.parametrize(("dialect", "manifests"), [("cilium", CILIUM), ("antrea", ANTREA)])
@pytest.mark.parametrize(
    ("permitted", "expected"),
    [
        (None, set()),
        ("10.0.0.0/8", {"10.0.0.0/8"}),
        ("10.0.0.0/8 ge 9 le 16", {"10.1.0.0/16"}),
        (
            "10.0.0.0/8 le 24,192.0.2.0/24",
            {"10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "192.0.2.0/24"},
        ),
        ("0.0.0.0/0", {"0.0.0.0/0"}),
        ("0.0.0.0/0 ge 1", set(ANNOUNCED) - {"0.0.0.0/0"}),
        ("2001:db8::/32", set()),
    ],
)
def test_what_is_permitted_is_accepted_and_installed(
    dialect: str,
    manifests: Path,
    permitted: str | None,
    expected: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    routes = [{"prefix": prefix, "nextHop": ROUTER} for prefix in ANNOUNCED]
    received = tmp_path / "received.json"
    received.write_text(json.dumps({ROUTER: routes}))
    arguments = ["--received", str(received)]
    if permitted is not None:
        arguments += [f"--{dialect}-import", permitted]
    directory = tmp_path / "manifests"
    directory.mkdir()
    document = rendered(manifests, directory, arguments, capsys)
    assert installed(document) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10.0.0.0", "'10.0.0.0' is not a prefix such as 10.0.0.0/24"),
        ("10.0.0.1/8", "has host bits set"),
        ("10.0.0.0/8 le", "'10.0.0.0/8 le' is not a prefix such as 10.0.0.0/8, or"),
        ("10.0.0.0/8 le 7", "'10.0.0.0/8 le 7': le 7 is not from 8 to 32"),
        ("2001:db8::/32 ge 129", "ge 129 is not from 32 to 128"),
        ("10.0.0.0/8 ge 24 le 16", "'10.0.0.0/8 ge 24 le 16': ge 24 is above le 16"),
    ],
)
def test_a_wrong_prefix_is_named_with_the_flag(text: str, message: str) -> None:
    for options, flag in ((CiliumOptions, "--cilium-import"), (AntreaOptions, "--antrea-import")):
        with pytest.raises(InvalidOption) as raised:
            options(imports=("192.0.2.0/24", text))
        assert raised.value.flag == flag
        assert message in raised.value.message


def test_rules_are_canonical_each_once_and_in_order() -> None:
    options = CiliumOptions(imports=("2001:DB8::/32,10.0.0.0/8  ge 16", "10.0.0.0/8 ge 16", ""))
    assert list(map(str, options.import_rules)) == ["10.0.0.0/8 ge 16", "2001:db8::/32"]
