"""Requests that do nothing, answered in every way of the bench."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bench import least_http


@pytest.mark.parametrize("way", least_http.WAYS)
def test_every_way_answers_that_one_prefix_has_changed(way: str, tmp_path: Path) -> None:
    request, end = least_http.WAYS[way].request, least_http.WAYS[way].end

    async def main() -> None:
        protocol = await least_http.WAYS[way].protocol()
        loop = asyncio.get_running_loop()
        async with await loop.create_unix_server(protocol, tmp_path / "s"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            for _ in range(2):
                writer.write(request)
                answer = await reader.readuntil(end)
                while answer.count(b"{") != answer.count(b"}"):
                    answer += await reader.readuntil(end)
                head, found, body = answer.rpartition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 OK\r\n") == bool(found) == (way != "lines")
                document = json.loads(body)
                assert (document if way == "lines" else document["items"][0])["changed"] == 1
            writer.close()

    asyncio.run(main())


def test_a_way_is_measured_in_a_process_of_its_own() -> None:
    figures = least_http.measure("octets", requests=3, pause=0.0)
    assert figures.median > 0
    assert figures.cpu > 0
