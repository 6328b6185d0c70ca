"""The bench reads the page as its script does: paths, limits, the revisions of each view, periods."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from bench import bench_page, workload
from cells import page

STATIC = Path(page.__file__).parent / "static"
SCRIPT = (STATIC / "page.js").read_text()


def constant(name: str) -> int:
    """Return a number of the script."""
    (value,) = re.findall(rf"\b{name} = (\d+)", SCRIPT)
    return int(value)


def function(name: str) -> str:
    """Return the text of a function of the script: a view, or one beside them."""
    (text,) = re.findall(
        rf"^( +)async (?:function )?{name}\(.*?\) {{\n(.*?)^\1}}", SCRIPT, re.MULTILINE | re.DOTALL
    )
    return str(text[1])


def paths(text: str) -> list[str]:
    """Return the paths that a part of the script reads, without their queries."""
    return re.findall(r"""read\("([^"]+)\"""", text)


def test_a_view_is_read_again_with_the_revisions_of_the_script() -> None:
    (table,) = re.findall(r"READ_WITH = {(.*?)};", SCRIPT, re.DOTALL)
    views = re.findall(r"(\w+): \[(.*?)\]", table)
    of_script = {view: frozenset(re.findall(r"\w+", names)) for view, names in views}
    assert of_script == bench_page.READ_WITH
    assert list(of_script) == list(bench_page.VIEWS)


@pytest.mark.parametrize("view", bench_page.VIEWS)
def test_a_view_reads_the_paths_of_the_script(view: str) -> None:
    # The head has the sessions; their counts alone are read without it.
    of_script = paths(function("counts" if view == "sessions" else view))
    assert [urlsplit(path).path for path in bench_page.VIEWS[view]] == of_script


def test_the_head_reads_the_paths_of_the_script() -> None:
    assert paths(function("overview")) + paths(function("process")) == list(bench_page.HEAD)


def test_a_view_has_the_limits_and_the_table_of_the_script() -> None:
    def query(view: str) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(bench_page.VIEWS[view][0]).query))

    (table,) = re.findall(r'name="table"><option>(\w+)', (STATIC / "page.html").read_text())
    assert query("routes") == {"table": table, "limit": str(constant("LIMIT"))}
    assert query("changes") == {"limit": str(constant("CHANGES_LIMIT"))}
    assert query("explain") == {"target": bench_page.EXPLAINED}
    assert f'"{bench_page.EXPLAINED}"' in str(workload.service(0)).replace("'", '"')


def test_the_periods_are_the_same() -> None:
    assert constant("PROCESS_PERIOD") == bench_page.PROCESS_SECONDS * 1000
    assert constant("HEAD_PERIOD") == bench_page.HEAD_SECONDS * 1000
    (periods,) = re.findall(r"VIEW_PERIODS = {(.*?)}", SCRIPT)
    of_script = {view: int(ms) for view, ms in re.findall(r"(\w+): (\d+)", periods)}
    assert of_script == {view: s * 1000 for view, s in bench_page.VIEW_SECONDS.items()}
    assert constant("VIEW_BURST") == bench_page.VIEW_BURST


def test_a_view_is_read_as_often_as_its_allowance_has_it() -> None:
    allowance = bench_page.Allowance(60)
    taken = [now for now in range(0, 360, 8) if allowance.pause(now) == 0]
    assert taken == [0, 8, 16, 24, 32, 64, 120, 184, 240, 304]
    assert allowance.pause(10_000) == 0
