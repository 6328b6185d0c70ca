"""The log level that an object sets is in effect in a running agent, and ends with the object."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from cells.declarations import SPEAKER
from cells.hive import load, provide
from cells.hive.hive import Hive
from cells.observability.logging import Logs
from cells.speaker.events import SpeakerEvents
from cells.speaker.sessions import Sessions
from speaker.api import SpeakerPort
from tests.cells.stand_in_speaker import StandInSpeaker
from tests.reconcilers.frrk8s.test_log_level import settings
from tests.support.cells import rewired
from tests.support.wait import until
from waggle_agent.__main__ import CELLS


def test_a_level_is_followed_without_a_restart(tmp_path: Path) -> None:
    speaker = rewired(
        SPEAKER,
        provides=(SpeakerEvents, Sessions, provide(StandInSpeaker, as_=SpeakerPort)),
        invokes=(Sessions,),
    )
    cells = tuple(speaker if cell is SPEAKER else cell for cell in CELLS)
    flags = {
        "--manifests": [str(tmp_path)],
        "--node-name": "n1",
        "--log-level": "error",
        "--mass-withdraw-hold": "0",
        "enable_cell": ["frrk8s"],
        "disable_cell": ["api"],
    }
    hive = Hive(cells, load(cells, flags=flags))
    file = tmp_path / "settings.json"

    def level() -> str:
        return next(one.message for one in hive.health.scope("logging").report())

    async def shows(text: str) -> None:
        await until(lambda: level() == text)

    async def scenario() -> None:
        task = asyncio.create_task(hive.run())
        await until(lambda: hive.readiness.ready)
        await shows("level error")
        for written, shown in (("none", "none"), ("warn", "warning")):
            file.write_text(json.dumps(settings(written)))
            await shows(f"level {shown}, set by frrk8s")
        hive.get(Logs).levels.choose("debug")
        await shows("level debug, set by waggle log")
        hive.get(Logs).configure("info")
        await shows("level debug, set by waggle log")
        hive.get(Logs).configure("error")
        hive.get(Logs).levels.choose(None)
        await shows("level warning, set by frrk8s")
        file.unlink()
        await shows("level error")
        hive.shutdown()
        await task

    asyncio.run(scenario())
