"""One version: of the package, the programs, the chart, and CHANGELOG's newest heading."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from pathlib import Path

import pytest

import waggle.__main__
import waggle_agent.__main__
import waggle_operator.__main__
from speaker.server import PREFIX_TABLE_FORM
from tests.support import plain_yaml

ROOT = Path(__file__).parents[2]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.mark.parametrize(
    ("program", "main"),
    [
        ("waggle", waggle.__main__.main),
        ("waggle-agent", waggle_agent.__main__.main),
        ("waggle-operator", waggle_operator.__main__.main),
    ],
)
def test_every_program_prints_it(
    program: str, main: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(main)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    detail = f" (prefix tables in {PREFIX_TABLE_FORM})" if program == "waggle-agent" else ""
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{program} {VERSION}{detail}\n")


def test_the_chart_is_of_it_and_installs_it() -> None:
    chart = plain_yaml.load((ROOT / "deploy" / "helm" / "waggle" / "Chart.yaml").read_text())
    semantic = re.sub(r"\.dev(\d+)$", r"-dev.\1", VERSION)
    assert (chart["version"], str(chart["appVersion"])) == (semantic, VERSION)


def test_the_changelog_has_it_with_its_date_below_what_is_not_released() -> None:
    headings = re.findall(r"(?m)^## (.+)$", (ROOT / "CHANGELOG.md").read_text())
    assert headings[0] == "Unreleased"
    versions = [heading.split(" - ") for heading in headings[1:]]
    assert ".dev" in VERSION or versions[0][0] == VERSION
    dates = [dt.date.fromisoformat(date) for _, date in versions]
    assert dates == sorted(dates, reverse=True)
