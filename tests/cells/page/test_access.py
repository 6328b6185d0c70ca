"""Access to the page: the host's own users on loopback, elsewhere users with the token."""

from __future__ import annotations

import http.client
import re
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import web

from cells.hive import HealthTree, SettingError
from cells.hive.lifecycle import Lifecycle
from cells.options import PageOptions
from cells.page.access import BODY_OCTETS, cookie_name
from cells.page.files import POLICY
from cells.page.server import PageServer
from tests.support.api import MadeUp, serving
from tests.support.page import Page, page, resources

TOKEN = b"correct horse"


def request(
    of: Page, path: str, method: str = "GET", body: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", of.port, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css", "/page.svg"])
def test_files_have_a_policy_that_lets_nothing_else_in(path: str) -> None:
    with page() as served:
        status, headers, text = request(served, path)
    assert status == 200
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), "no foreign host"
    assert "innerHTML" not in text
    assert "style=" not in text


def test_on_loopback_without_a_token_another_name_is_refused() -> None:
    with page(resources()) as served:
        assert request(served, "/v1/peers", Host=f"localhost:{served.port}")[0] == 200
        for host in ("[::1]:1", "127.0.0.2:8080", "localhost"):
            assert request(served, "/v1/peers", Host=host)[0] == 200, host
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
            status, _, text = request(served, "/v1/peers", Host=host)
            assert status in (400, 421), host
            assert "tor-1" not in text
            assert status == 400 or "answers are at http://localhost" in text


def test_a_page_of_another_site_does_not_make_the_agent_work() -> None:
    with page(resources()) as served:
        for site, mode, status in (
            ("cross-site", "no-cors", 403),
            ("same-site", "cors", 403),
            ("same-origin", "cors", 200),
            ("cross-site", "navigate", 200),
        ):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
            assert request(served, "/v1/peers", **headers)[0] == status, headers


def test_with_a_token_the_page_asks_for_it_and_keeps_a_cookie() -> None:
    with page(resources(), token=TOKEN, local=False) as served:
        assert request(served, "/v1/peers")[0] == 401
        assert request(served, "/v1/live")[0] == 401
        status, _, form = request(served, "/")
        assert (status, 'type="password"' in form) == (200, True)
        form_type = {"Content-Type": "application/x-www-form-urlencoded"}
        wrong = request(served, "/sign-in", "POST", urlencode({"token": "wrong"}), **form_type)
        assert (wrong[0], "set-cookie" in wrong[1]) == (401, False)
        body = urlencode({"token": TOKEN.decode()})
        status, headers, _ = request(served, "/sign-in", "POST", body, **form_type)
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/"))
        assert TOKEN.decode() not in cookie
        value = cookie.partition(";")[0]
        assert "tor-1" in request(served, "/v1/peers", Cookie=value)[2]
        assert request(served, "/v1/peers", Cookie=f"waggle-{served.port}=0")[0] == 401


def test_two_pages_of_one_host_have_a_cookie_each() -> None:
    form_type = {"Content-Type": "application/x-www-form-urlencoded"}
    with page(token=TOKEN) as one, page(token=b"another") as other:
        cookies = []
        for served, token in ((one, TOKEN), (other, b"another")):
            body = urlencode({"token": token.decode()})
            _, headers, _ = request(served, "/sign-in", "POST", body, **form_type)
            cookies.append(headers["set-cookie"].partition(";")[0])
        # A browser sends the cookies of a host to all of its ports.
        both = "; ".join(cookies)
        assert request(one, "/v1/live-is-no-path", Cookie=both)[0] == 404
        assert request(other, "/v1/live-is-no-path", Cookie=both)[0] == 404


def test_a_request_without_a_host_looks_up_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_up(_: web.BaseRequest) -> str:
        raise AssertionError

    monkeypatch.setattr(web.BaseRequest, "host", property(looked_up))
    form_type = "Content-Type: application/x-www-form-urlencoded"
    body = urlencode({"token": TOKEN.decode()})
    head = f"POST /sign-in HTTP/1.0\r\n{form_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    with (
        page(token=TOKEN) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as sock,
    ):
        sock.sendall(f"{head}{body}".encode())
        answer = b"".join(iter(lambda: sock.recv(4096), b"")).decode()
    assert "Set-Cookie: waggle=" in answer


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:8767", "waggle-8767"),
        ("[::1]:8767", "waggle-8767"),
        ("[fd00::8767]", "waggle"),
        ("node-1", "waggle"),
        ("node-1:x;y", "waggle"),
    ],
)
def test_the_port_that_a_browser_has_names_the_cookie(host: str, name: str) -> None:
    assert cookie_name(host) == name


def test_a_program_sends_the_token_as_a_header() -> None:
    with page(resources(), token=TOKEN) as served:
        assert request(served, "/v1/peers", Authorization="Bearer correct horse")[0] == 200
        assert request(served, "/v1/peers", Authorization="Bearer correct")[0] == 401


def test_an_empty_token_admits_no_one() -> None:
    with page(resources(), token=b"") as served:
        assert request(served, "/v1/peers", Authorization="Bearer ")[0] == 401
        assert request(served, "/sign-in?code=")[0] == 401


def test_the_token_of_an_agent_is_not_read_from_an_address() -> None:
    with page(resources(), token=TOKEN) as served:
        for name in ("token", "code"):
            assert request(served, f"/sign-in?{urlencode({name: TOKEN.decode()})}")[0] == 401


def test_a_form_may_come_in_pieces() -> None:
    with page(token=TOKEN) as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        connection.putrequest("POST", "/sign-in")
        body = urlencode({"token": TOKEN.decode()}).encode()
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        time.sleep(0.1)
        connection.send(body)
        assert connection.getresponse().status == 303
        connection.close()


def test_a_form_that_does_not_end_is_refused() -> None:
    with page(token=TOKEN) as served:
        assert request(served, "/sign-in", "POST", "x" * (BODY_OCTETS * 20))[0] == 413


def test_there_are_no_actions() -> None:
    with page(resources()) as served:
        assert request(served, "/v1/clear", "POST", "{}")[0] in (404, 405)
        assert request(served, "/v1/peers", "POST", "{}")[0] == 405


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"address": "0.0.0.0:8080"}, "is not on loopback: set --page-token-file or"),
        ({"address": "node.example:8080"}, "is not on loopback"),
        ({"address": "8080", "certificate": "/none"}, "needs --page-key"),
        ({"address": "8080", "client_ca": "/none"}, "needs --page-key"),
        ({"address": "8080", "certificate": "/none", "key": "/none"}, "cannot be used: No such"),
        ({"address": "here"}, "is not"),
    ],
)
def test_an_address_that_would_be_open_is_wrong_usage(
    options: dict[str, Any], message: str
) -> None:
    health: Any = SimpleNamespace(ok=lambda _: None)
    empty: Any = ()
    with pytest.raises(SettingError, match=message):
        PageServer(Lifecycle(), health, PageOptions(**options), empty, empty, empty)


def test_without_an_address_the_page_is_on_the_socket_alone() -> None:
    health, lifecycle, empty = HealthTree(), Lifecycle(), ()
    none: Any = empty
    PageServer(lifecycle, health, PageOptions(), none, none, none)
    assert not list(lifecycle.names)
    assert health.status is not None
    assert health.status.message == "on the agent's socket"


def test_an_action_on_the_socket_is_not_for_a_site_of_a_browser(tmp_path: Path) -> None:
    from cells.api.transport import UnixTransport

    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        transport = UnixTransport(path)
        with transport.request("POST", "/v1/clear", '{"peer": "tor-1"}', timeout=60) as answer:
            assert answer.status == 200
        connection = _over(path)
        connection.request(
            "POST", "/v1/clear", '{"peer": "tor-1"}', {"Origin": "http://evil.example"}
        )
        assert connection.getresponse().status == 403
        connection.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200),
        ("127.0.0.1:8080", 200),
        ("agent", 200),
        ("evil.example:8080", 421),
        ("", 421),
    ],
)
def test_a_forwarded_socket_answers_no_name_of_another_site(
    tmp_path: Path, host: str, status: int
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        connection = _over(path)
        connection.request("GET", "/v1/peers", headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()


def _over(path: Path) -> http.client.HTTPConnection:
    import socket

    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    return connection
