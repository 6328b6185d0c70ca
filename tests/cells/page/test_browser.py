"""The page in a browser: views, keys, dark and light, live, and hostile text as text.

``WAGGLE_SCREENSHOTS=1`` renews the pictures of docs/page.md. Their pixels are compared where browser
and font are the same that drew them.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import struct
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast

import pytest

from cells import page as static
from cells.api.history import HistoryItem
from cells.api.model import ExplainItem, OriginItem, RouteItem
from cells.api.resource import ApiResource
from tests.support.page import CHROMIUM, HOSTILE, NOW, Page, history, page, resources

DOCS = Path(__file__).resolve().parents[3] / "docs"
PICTURED: Final = Path(__file__).parent / "pictured.txt"
"""A digest of the files of the page of which the pictures are, and what they were drawn by."""
WIDTH, HEIGHT = 1180, 460
PICTURES = {
    "page-sessions.png": ("sessions", "light"),
    "page-explain.png": ("explain=198.51.100.10/32", "light"),
    "page-changes.png": ("changes", "dark"),
}
PIXELS: Final = 0.0005
"""The part of a picture that may differ, for the edges of letters."""
TEXT_WIDTH: Final = """() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.font = getComputedStyle(document.body).font;
  return context.measureText("Established 198.51.100.10/32").width;
}"""
"""Another font has another width."""
DIFFERENT: Final = """async (pictures) => {
  const pixels = async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height).data;
  };
  const [one, other] = await Promise.all(pictures.map(pixels));
  let count = 0;
  for (let i = 0; i < one.length; i += 4) {
    count += [0, 1, 2].some((j) => Math.abs(one[i + j] - other[i + j]) > 32);
  }
  return count;
}"""
"""Counts the pixels of two pictures of which a colour differs by more than an eighth."""

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (tests/support/install-chromium)"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        # In a container a browser has no sandbox of its own.
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=120_000
        )
        yield launched
        launched.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:  # noqa: ANN401
    """Close the tabs of a test: an open one goes on looking for its agent."""
    yield chromium
    for context in chromium.contexts:
        context.close()


class Tab:
    """A tab, and what its console has reported."""

    def __init__(self, browser: Any, served: Page, scheme: str = "light") -> None:  # noqa: ANN401
        viewport = {"width": WIDTH, "height": HEIGHT}
        self.page = browser.new_page(
            viewport=viewport, color_scheme=scheme, timezone_id="UTC", locale="en-US"
        )
        self.page.clock.set_fixed_time(NOW)
        self.page.set_default_timeout(60_000)
        self.reported: list[str] = []
        self.page.on("console", lambda message: self.reported.append(message.text))
        self.page.on("pageerror", lambda error: self.reported.append(str(error)))
        self._url = served.url

    def open(self, view: str) -> None:
        """Open a view and wait until it has been read, once more with the first event."""
        self.page.goto(f"about:blank#{view}")
        self.page.goto(f"{self._url}#{view}")
        self.page.wait_for_selector("#connection.live")
        self.page.wait_for_function(
            "() => Number(document.body.dataset.read) >= 2 && document.body.ariaBusy === 'false'"
        )

    def rows(self, view: str) -> list[str]:
        """Return the rows of the first table of a view."""
        rows = self.page.locator(f"#view-{view} table >> nth=0").locator("tbody tr")
        return [" ".join(text.split()) for text in rows.all_inner_texts()]


def test_each_view_shows_what_the_agent_has(browser: Any) -> None:  # noqa: ANN401
    with page(resources()) as served:
        tab = Tab(browser, served)
        tab.open("sessions")
        assert (
            tab.page.locator("#summary").inner_text().split("\n")[-1]
            == "2 of 3 sessions Established"
        )
        down, *up = tab.rows("sessions")
        assert re.match(r"tor-3 2001:db8::3 65003 Active \d+m", down)
        assert down.endswith("connection refused")
        assert [row.split()[0] for row in up] == ["tor-1", "tor-2"]
        tab.open("routes")
        assert len(tab.rows("routes")) == 12
        tab.open("routes=198.51.100.12/32")
        assert [row.split()[:2] for row in tab.rows("routes")] == [
            ["198.51.100.12/32", "tor-1"],
            ["198.51.100.12/32", "tor-2"],
        ]
        tab.open("explain=198.51.100.10/32")
        assert tab.page.locator(".graph .node").count() == 6
        assert tab.page.locator(".graph path.yes").count() == 4
        assert tab.page.locator(".graph path.no").count() == 1
        assert "SessionDown" in tab.rows("explain")[2]
        tab.open("changes=shop/web")
        assert len(tab.rows("changes")) == 3
        tab.open("health")
        assert [row.split()[0] for row in tab.rows("health")] == ["instance", "route-set", "peer"]
        assert tab.page.locator("#cells tbody tr >> nth=0").inner_text().split()[1] == "degraded"
        assert tab.reported == []


def test_keys_change_the_view_and_reach_the_search(browser: Any) -> None:  # noqa: ANN401
    with page(resources()) as served:
        tab = Tab(browser, served)
        tab.open("sessions")
        for key, view in (("2", "routes"), ("4", "changes"), ("1", "sessions")):
            tab.page.keyboard.press(key)
            tab.page.wait_for_selector(f"#view-{view}:not([hidden])")
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("tor-2")
        tab.page.wait_for_selector("#view-sessions tbody tr:only-child")
        assert [row.split()[0] for row in tab.rows("sessions")] == ["tor-2"]
        tab.page.keyboard.press("Escape")
        tab.page.keyboard.press("5")
        tab.page.wait_for_selector("#view-health:not([hidden])")
        assert tab.page.get_attribute("nav a[data-view=health]", "aria-current") == "page"


FOCUSED: Final = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  const name = element.dataset.view || element.name || element.className || element.tagName;
  return [name, style.outlineStyle, element.checkVisibility()];
}"""


def test_every_part_of_a_view_is_reached_with_the_tabulator_and_is_seen_to_be(
    browser: Any,  # noqa: ANN401
) -> None:
    with page(resources()) as served:
        tab = Tab(browser, served)
        tab.open("sessions")
        order = []
        for _ in range(7):
            tab.page.keyboard.press("Tab")
            name, outline, is_visible = tab.page.evaluate(FOCUSED)
            assert (outline, is_visible) == ("solid", True), name
            order.append(name)
        views = ["sessions", "routes", "explain", "changes", "health"]
        assert order == [*views, "text", "table"]
        for _ in range(4):
            tab.page.keyboard.press("Shift+Tab")
        assert tab.page.evaluate(FOCUSED)[0] == "explain"
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("#view-explain:not([hidden])")
        assert tab.reported == []
        tab.page.close()


def test_text_of_peers_and_objects_stays_text(browser: Any) -> None:  # noqa: ANN401
    with page(resources(HOSTILE)) as served:
        tab = Tab(browser, served)
        for view in ("sessions", "routes", "explain=198.51.100.10/32", "changes", "health"):
            tab.open(view)
            section = tab.page.locator(f"#view-{view.partition('=')[0]}")
            assert "<img src=x" in section.inner_text()
            assert section.locator("img").count() == 0
        assert tab.page.title() == "worker-1 \u2013 Waggle"
        assert tab.reported == []


LONG: Final = "production-cluster-in-the-west-hall-{0}-rack-{0}-router-{0}"


def test_long_names_hide_no_column_and_stay_distinct(browser: Any) -> None:  # noqa: ANN401
    names = [LONG.format(number) for number in range(120)]
    of_agent = [of for of in resources() if of.path != "/v1/explain"]
    (status,) = next(of.read({}) for of in of_agent if of.path == "/v1/status")
    for name, peer in zip(names, cast("Any", status).peers, strict=False):
        peer["name"] = name
    explained = [
        ExplainItem(
            node="worker-1",
            instance="main",
            peer=name,
            object=OriginItem(kind="Service", namespace="shop", name="web"),
            family="ipv4-unicast",
            prefix="198.51.100.10/32",
            advertised=True,
            reason="Advertised",
        )
        for name in names
    ]
    explain = ApiResource(
        path="/v1/explain", kind="ExplainList", parameters=("target",), read=lambda _: explained
    )
    with page([*of_agent, explain]) as served:
        tab = Tab(browser, served)
        tab.open("sessions")
        reason = tab.page.locator("#view-sessions th:has-text('Reason')").bounding_box()
        assert reason["x"] + reason["width"] <= WIDTH - 20, "within the margin"
        tab.open("explain=198.51.100.10/32")
        shown = tab.page.locator("#view-explain output").inner_text()
        assert shown == "advertised in 120 of 120 cases; the first 100 are drawn"
        labels = tab.page.locator(".graph .node > text").all_text_contents()
        assert len(set(labels)) == 102, "a Service, a prefix and a hundred peers"
        place = tab.page.locator(".graph .node > text:text-is('Service/shop/web')").bounding_box()
        assert place["y"] < HEIGHT, "the begin of the chain is in sight"
        assert tab.reported == []


def test_a_change_is_shown_without_a_reload(browser: Any) -> None:  # noqa: ANN401
    log = history()
    with page(resources(log=log)) as served:
        tab = Tab(browser, served)
        tab.open("changes")
        count = len(tab.rows("changes"))
        added = next(iter(log.newest_first()))
        from msgspec.structs import replace

        log.add(replace(added, name="main/tor-9", message="hello"))
        served.change()
        tab.page.wait_for_selector("#view-changes td:has-text('Session/main/tor-9')")
        assert len(tab.rows("changes")) == count + 1


def test_unknown_values_are_a_sentence_and_a_lost_agent_is_reported(browser: Any) -> None:  # noqa: ANN401
    with page(resources()) as served:
        tab = Tab(browser, served)
        tab.open("changes=shop/wib")
        assert "did you mean shop/web?" in tab.page.locator("#errors").inner_text()
    tab.page.wait_for_selector("#connection.lost")


@pytest.mark.parametrize(("name", "view", "scheme"), [(n, *of) for n, of in PICTURES.items()])
def test_the_pictures_of_the_documentation_show_this_page(
    browser: Any,  # noqa: ANN401
    tmp_path: Path,
    name: str,
    view: str,
    scheme: str,
) -> None:
    renew = bool(os.environ.get("WAGGLE_SCREENSHOTS"))
    picture = (DOCS if renew else tmp_path) / name
    with page(resources()) as served:
        tab = Tab(browser, served, scheme)
        tab.open(view)
        background = tab.page.evaluate(
            "() => getComputedStyle(document.documentElement).backgroundColor"
        )
        assert background == ("rgb(251, 251, 250)" if scheme == "light" else "rgb(23, 22, 19)")
        tab.page.screenshot(path=picture)
        drawn_by = f"Chromium {browser.version}, {tab.page.evaluate(TEXT_WIDTH):.3f}"
    for path in (picture, DOCS / name):
        octets = path.read_bytes()
        assert octets.startswith(b"\x89PNG")
        assert struct.unpack(">II", octets[16:24]) == (WIDTH, HEIGHT)
    if renew:
        PICTURED.write_text(f"{static_digest()}\n{drawn_by}\n")
    if PICTURED.read_text().splitlines()[1] == drawn_by:
        blank = browser.new_page()
        found = blank.evaluate(DIFFERENT, [_base64(picture), _base64(DOCS / name)])
        assert found <= PIXELS * (WIDTH * HEIGHT), f"{found} pixels differ"


def _base64(picture: Path) -> str:
    return base64.b64encode(picture.read_bytes()).decode()


def test_a_picture_of_another_view_differs(browser: Any) -> None:  # noqa: ANN401
    first, second, _ = (_base64(DOCS / name) for name in PICTURES)
    found = browser.new_page().evaluate(DIFFERENT, [first, second])
    assert found > 10 * PIXELS * (WIDTH * HEIGHT)


def static_digest() -> str:
    """Return a digest of the files of the page."""
    digest = hashlib.sha256()
    for path in sorted((Path(static.__file__).parent / "static").iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def test_the_pictures_of_the_documentation_are_renewed_with_the_page() -> None:
    """With ``WAGGLE_SCREENSHOTS=1`` the test above writes both."""
    assert PICTURED.read_text().splitlines()[0] == static_digest()


def followed(
    tab: Tab, served: Page, view: str, events: Sequence[dict[str, int]]
) -> Iterator[list[str]]:
    """Open a view and send events; yields the paths that are read after each."""
    tab.page.add_init_script(
        "window.heard = 0; window.requested = []; const read = window.fetch;"
        "window.fetch = (url, ...more) => {"
        " window.requested.push(String(url)); return read(url, ...more); };"
        "window.EventSource = class extends EventSource { constructor(url) { super(url);"
        " this.addEventListener('message', () => { window.heard += 1; }); } };"
    )
    tab.open(view)

    def read_until(heard: int) -> list[str]:
        tab.page.wait_for_function(
            f"() => window.heard === {heard} && document.body.ariaBusy === 'false'"
        )
        # Noted in the page: the browser's own messages of requests may come behind that of the wait.
        urls = tab.page.evaluate("() => window.requested.splice(0)")
        return [re.sub(r"\?.*", "", url.partition("/v1/")[2]) for url in urls]

    read_until(1)
    for number, revisions in enumerate(events, 2):
        served.change(**revisions)
        yield read_until(number)


def test_an_event_has_the_page_read_the_parts_whose_revision_differs(
    browser: Any,  # noqa: ANN401
) -> None:
    events = (
        {"state": 1, "routes": 1, "history": 1, "health": 1},
        {"state": 1, "routes": 2, "history": 2, "health": 1},
        {"state": 1, "routes": 3, "history": 2, "health": 2},
        {"state": 2, "routes": 3, "history": 2, "health": 2},
        {"sessions": 1},
    )
    with page(resources()) as served:
        tab = Tab(browser, served)
        found = list(followed(tab, served, "changes", events))
        everything = ["status", "process", "history"]
        assert found == [everything, ["history"], [], ["status", "process"], everything]
        assert tab.reported == []


def test_sessions_that_have_not_changed_are_read_for_their_counts_alone(
    browser: Any,  # noqa: ANN401
) -> None:
    of_agent = resources()
    (status,) = next(of.read({}) for of in of_agent if of.path == "/v1/status")
    tor_1: dict[str, Any] = cast("Any", status).peers[0]
    events = (
        {"state": 1, "routes": 1},
        {"state": 1, "routes": 2},
        {"state": 2, "routes": 2},
    )
    with page(of_agent) as served:
        tab = Tab(browser, served)
        head = ["status", "process"]
        found = []
        for number, paths in enumerate(followed(tab, served, "sessions", events)):
            found.append(paths)
            (row,) = (row for row in tab.rows("sessions") if row.startswith("tor-1"))
            received, advertised, updates_in, updates_out = row.split()[6:10]
            assert (received, advertised, updates_in) == ("3", "12", "42")
            assert updates_out == str(17 + number)
            tor_1["updatesSent"] += 1
        assert found == [head, ["peer-counts"], head]
        assert len(tab.rows("sessions")) == 3
        assert tab.reported == []


def test_after_a_change_the_process_is_read_in_half_a_minute_and_the_head_in_two(
    browser: Any,  # noqa: ANN401
) -> None:
    with page(resources()) as served:
        tab = Tab(browser, served)
        tab.page.clock.install(time=NOW)
        events = ({"state": 1, "routes": 1}, {"state": 1, "routes": 2})
        assert list(followed(tab, served, "sessions", events))[1] == ["peer-counts"]
        urls: list[str] = []
        tab.page.on("request", lambda request: urls.append(request.url))

        def read_after(seconds: int) -> list[str]:
            urls.clear()
            tab.page.clock.run_for(seconds * 1000)
            tab.page.wait_for_function("() => document.body.ariaBusy === 'false'")
            return [re.sub(r"\?.*", "", url.partition("/v1/")[2]) for url in urls]

        assert read_after(29) == []
        assert read_after(1) == ["process", "peer-counts"]
        assert read_after(89) == []
        assert read_after(1) == ["status", "process"]
        assert tab.reported == []


def test_a_view_that_costs_much_is_read_five_times_and_then_once_in_its_period(
    browser: Any,  # noqa: ANN401
) -> None:
    """A single change shows at once; where routes change all the time, routes are 20 s old."""
    with page(resources()) as served:
        tab = Tab(browser, served)
        tab.page.clock.install(time=NOW)
        # A clock runs until it is paused, which it can be in its future alone.
        tab.page.clock.pause_at(NOW + timedelta(minutes=1))
        events = [{"state": 1, "routes": number} for number in range(1, 9)]
        read = [*followed(tab, served, "routes", events)]
        # The first event has the whole page read.
        assert read == [["status", "process", "routes"], *[["routes"]] * 5, [], []]
        tab.page.evaluate("() => window.requested.splice(0)")
        tab.page.clock.run_for(19_000)
        assert tab.page.evaluate("() => window.requested") == []
        tab.page.clock.run_for(1_000)
        tab.page.wait_for_function("() => document.body.ariaBusy === 'false'")
        urls = tab.page.evaluate("() => window.requested.splice(0)")
        assert [re.sub(r"\?.*", "", url.partition("/v1/")[2]) for url in urls] == ["routes"]
        assert tab.reported == []


def test_of_several_nodes_each_has_its_part_of_the_rows_and_its_own_new_ones(
    browser: Any,  # noqa: ANN401
) -> None:
    """Each node numbers its own changes."""

    def changed(node: str, sequence: int) -> HistoryItem:
        return HistoryItem(
            event_time=NOW,
            type="ADDED",
            kind="Service",
            name="shop/x",
            node=node,
            sequence=sequence,
        )

    changes = [changed("worker-1", 900), changed("worker-2", 3)]
    routes = [
        RouteItem(
            node=f"worker-{1 + number % 2}",
            instance="main",
            peer="tor-1",
            family="ipv4-unicast",
            prefix=f"10.{number // 250}.{number % 250}.0/24",
        )
        for number in range(600)
    ]
    of_nodes = [
        ApiResource(
            path="/v1/routes",
            kind="RouteList",
            parameters=("table",),
            limited=True,
            read=lambda _: routes,
        ),
        ApiResource(path="/v1/history", kind="HistoryList", limited=True, read=lambda _: changes),
    ]
    replaced = {of.path for of in of_nodes}
    of_one = [of for of in resources() if of.path not in replaced]
    with page([*of_one, *of_nodes]) as served:
        tab = Tab(browser, served)
        tab.open("routes")
        output = tab.page.locator("#view-routes output")
        assert output.inner_text() == "250 routes (the first 250 of each node)"
        tab.open("changes")
        new = tab.page.locator("#view-changes tr.new")
        assert new.count() == 0
        changes.append(changed("worker-2", 4))
        served.change()
        new.wait_for()
        assert len(tab.rows("changes")) == 3
        assert new.count() == 1
        assert tab.reported == []
