"""`originate` of `waggle router` with a table of the kernel: announced while the kernel has a route."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from reconcilers.model import PrefixRule
from resources.host import KernelRoute, KernelTable
from speaker.api import RouteAttributes
from speaker.nlri import prefix_to_text
from tests.support.engine_speaker import EngineSpeaker
from tests.support.wait import until
from waggle.commands.router import redistribution
from waggle.commands.router.redistribution import KernelOriginated
from waggle.commands.router.reload import apply
from waggle.router_config import Config, ConfigError, load

HEAD = "asn: 65000\nrouterID: 192.0.2.1\n"
SOURCE = "{table: 198, protocol: 248, prefixes: [{prefix: 192.0.2.0/24, ge: 32, le: 32}]}"


def config(tmp_path: Path, originate: str) -> Config:
    path = tmp_path / "router.yaml"
    path.write_text(f"{HEAD}originate: [{originate}]\n")
    return load(path)


def routes(*prefixes: str) -> frozenset[KernelRoute]:
    return frozenset(KernelRoute(prefix, 198, 248) for prefix in prefixes)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (SOURCE.replace("198", "255"), "originate[1].table: 255 is the kernel's table of local"),
        (SOURCE.replace("248", "186"), "originate[1].protocol: 186 is BGP: received routes"),
        (SOURCE.replace("248", "256"), "originate[1].protocol: "),
        (SOURCE.replace("192.0.2.0/24", "192.0.2.0"), "originate[1].prefixes[0]: "),
        (SOURCE.replace("ge: 32", "ge: 40"), "originate[1].prefixes[0]: "),
        ("{table: 198, prefixes: [0.0.0.0/0]}", 'originate[1]: the key "protocol" is missing'),
        ("{table: 198, protocol: 4, prefixes: []}", "originate[1].prefixes: "),
        (
            SOURCE.replace("table", "tabel"),
            'originate[1]: unknown key "tabel"; did you mean table?',
        ),
    ],
)
def test_a_wrong_entry_is_one_sentence_with_its_key(
    source: str, error: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        config(tmp_path, f"10.0.0.0/8, {source}")
    assert any(error in sentence for sentence in raised.value.sentences), raised.value.sentences


def test_an_entry_permits_the_lengths_of_its_ranges(tmp_path: Path) -> None:
    (permitted,) = config(
        tmp_path, SOURCE.replace("le: 32", "le: 31").replace("ge: 32", "ge: 28")
    ).redistributions()
    assert permitted.permitted == (PrefixRule("192.0.2.0/24", 28, 31),)


def test_installed_routes_are_not_originated(tmp_path: Path) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(f"{HEAD}kernel: {{protocol: 248}}\noriginate: [{SOURCE}]\n")
    with pytest.raises(ConfigError, match="protocol: 248 is that of installed routes"):
        load(path)


def test_routes_follow_the_kernel_and_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[Callable[[frozenset[KernelRoute]], None]] = []

    async def watch(
        tables: frozenset[KernelTable], report: Callable[[frozenset[KernelRoute]], None]
    ) -> None:
        assert tables == {KernelTable(198, 248)}
        followed.append(report)
        await asyncio.Event().wait()

    monkeypatch.setattr(redistribution, "watch", watch)
    monkeypatch.setattr(redistribution, "read", lambda _: [])
    speaker = EngineSpeaker()
    speaker.set_collectors = lambda _: None  # type: ignore[attr-defined]
    local: dict[str, int] = {}

    def settle() -> dict[str, int]:
        """Return the originated prefixes with the ORIGIN of each."""
        for name, *arguments in speaker.take():
            if name != "update_local":
                continue
            changes: dict[Any, dict[bytes, RouteAttributes | None]] = arguments[-1]
            for family, of_family in changes.items():
                for nlri, value in of_family.items():
                    text = prefix_to_text(family, nlri)
                    if value is None:
                        del local[text]
                    else:
                        local[text] = value.origin
        return local

    async def scenario() -> None:
        first, second = config(tmp_path, f"10.0.0.0/8, {SOURCE}"), config(tmp_path, SOURCE)
        with_own = config(tmp_path, f"192.0.2.1/32, {SOURCE}")
        originated = KernelOriginated(cast("Any", speaker), pytest.fail)
        await originated.read(first)
        apply(cast("Any", speaker), None, first, originated.configure)
        assert settle() == {"10.0.0.0/8": 0}
        await until(lambda: bool(followed))
        (report,) = followed
        # A change of the kernel costs nothing for the prefixes of the file.
        monkeypatch.setattr(Config, "originated", pytest.fail)
        report(routes("192.0.2.1/32", "192.0.2.0/24", "198.51.100.1/32"))
        monkeypatch.undo()
        monkeypatch.setattr(redistribution, "watch", watch)
        assert settle() == {"10.0.0.0/8": 0, "192.0.2.1/32": 2}
        apply(cast("Any", speaker), first, second, originated.configure)
        assert settle() == {"192.0.2.1/32": 2}
        # A prefix of the file itself does not depend on the kernel.
        apply(cast("Any", speaker), second, with_own, originated.configure)
        report(routes())
        assert settle() == {"192.0.2.1/32": 0}
        report(routes("192.0.2.1/32"))
        apply(cast("Any", speaker), with_own, second, originated.configure)
        assert settle() == {"192.0.2.1/32": 2}
        report(routes())
        assert settle() == {}
        originated.stop()

    asyncio.run(scenario())
