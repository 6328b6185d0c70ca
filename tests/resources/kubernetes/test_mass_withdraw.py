"""F05 in virtual time: an API server that is empty, or half empty, after a restart or a restore."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from resources.kubernetes import Phase
from resources.kubernetes.recovery import TOGETHER_SECONDS, Recovery
from resources.source import Delete
from tests.resources.kubernetes.objects import service
from tests.resources.kubernetes.virtual import Wire, names, phase, reflecting
from tests.support import looptime
from tests.support.wait import until

ALL = {f"s{number}" for number in range(10)}


def full() -> Wire:
    wire = Wire()
    for name in sorted(ALL):
        wire.state.put(service(name))
    return wire


def lose(wire: Wire, left: int = 0) -> dict[tuple[str, str], dict[str, object]]:
    """Empty the API server without events, as a restore of etcd does; returns what it had."""
    objects = wire.state.objects["services"]
    before = dict(objects)
    for key in sorted(objects)[left:]:
        del objects[key]
    wire.state.version += 1
    wire.there.clear()
    return before


async def back(wire: Wire) -> None:
    await asyncio.sleep(3)
    wire.state.compact()
    wire.there.set()


@pytest.mark.parametrize("left", [0, 5], ids=["empty", "half"])
def test_f05_objects_missing_from_lists_are_kept_for_a_minute(left: int) -> None:
    async def scenario() -> None:
        wire = full()
        async with reflecting(wire) as (reflector, events):
            await asyncio.sleep(5)
            assert names(reflector) == ALL
            lose(wire, left)
            await back(wire)
            await until(lambda: phase(reflector) is Phase.HOLDING)
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(59)
            assert names(reflector) == ALL
            assert phase(reflector) is Phase.HOLDING
            assert "--mass-withdraw-hold" in reflector.status.message
            assert not any(isinstance(event, Delete) for event in events)
            await asyncio.sleep(5)
            assert len(names(reflector)) == left
            assert phase(reflector) is Phase.FOLLOWING
            # Confirmed again and again, after pauses that grow.
            found = [at for at in wire.lists if began - 1 <= at <= began + 65]
            pauses = [b - a for a, b in itertools.pairwise(found)]
            assert 5 <= len(found) <= 12
            assert max(pauses) > 4 * pauses[0]

    looptime.run(scenario())


def test_f05_a_feed_that_holds_a_list_reads_the_api_server() -> None:
    """The outage ends with the list, whatever it has: the other feeds return."""

    async def scenario() -> None:
        wire = full()
        recovery = Recovery(random.Random(3), 0.5, 30.0)  # noqa: S311  jitter
        async with reflecting(wire, recovery=recovery) as (reflector, _):
            await asyncio.sleep(5)
            assert recovery.reading == 1
            lose(wire)
            await asyncio.sleep(1)
            assert recovery.reading == 0
            other = asyncio.create_task(recovery.pause(600))
            await back(wire)
            await until(lambda: phase(reflector) is Phase.HOLDING)
            assert recovery.reading == 1
            await asyncio.sleep(TOGETHER_SECONDS)
            assert phase(reflector) is Phase.HOLDING
            assert other.done()

    looptime.run(scenario())


def test_f05_an_outage_ends_with_the_list_that_is_held() -> None:
    """Also where the watch could not go on before, as its version was too old."""

    async def scenario() -> None:
        wire = full()
        recovery = Recovery(random.Random(3), 0.5, 30.0)  # noqa: S311  jitter
        async with reflecting(wire, recovery=recovery) as (reflector, _):
            await asyncio.sleep(5)
            lose(wire)
            wire.there.set()
            wire.state.compact()
            wire.fails_lists = wire.ends_watches = True
            await until(lambda: phase(reflector) is Phase.FAILING)
            other = asyncio.create_task(recovery.pause(600))
            wire.fails_lists = wire.ends_watches = False
            await until(lambda: phase(reflector) is Phase.HOLDING)
            await asyncio.sleep(TOGETHER_SECONDS)
            assert other.done()

    looptime.run(scenario())


def test_f05_a_cold_api_server_that_fills_within_the_time_costs_nothing() -> None:
    async def scenario() -> None:
        wire = full()
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(5)
            before = lose(wire)
            await back(wire)
            await asyncio.sleep(40)
            assert names(reflector) == ALL
            wire.state.objects["services"].update(before)
            await asyncio.sleep(40)
            assert names(reflector) == ALL
            assert phase(reflector) is Phase.FOLLOWING

    looptime.run(scenario())


def test_f05_objects_that_return_after_they_were_deleted_are_found_within_minutes() -> None:
    async def scenario() -> None:
        wire = full()
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(5)
            before = lose(wire)
            await back(wire)
            await asyncio.sleep(100)
            assert names(reflector) == set()
            # Without an event, as its watch cache was filled behind its back.
            wire.state.objects["services"].update(before)
            await asyncio.sleep(240)
            assert names(reflector) == ALL

    looptime.run(scenario())


def test_f05_an_outage_does_not_confirm_that_objects_are_gone() -> None:
    async def scenario() -> None:
        wire = full()
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(5)
            lose(wire)
            await back(wire)
            await asyncio.sleep(20)
            wire.there.clear()
            await asyncio.sleep(600)
            wire.there.set()
            await asyncio.sleep(35)
            assert names(reflector) == ALL
            await asyncio.sleep(60)
            assert names(reflector) == set()

    looptime.run(scenario())


def test_f05_deletions_in_a_watch_are_not_held() -> None:
    async def scenario() -> None:
        wire = full()
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(5)
            for name in sorted(ALL):
                wire.state.delete("Service", name, "shop")
            await asyncio.sleep(2)
            assert names(reflector) == set()
            assert phase(reflector) is Phase.FOLLOWING

    looptime.run(scenario())


def one_service() -> Wire:
    """An API server with one Service beside its own."""
    wire = Wire()
    wire.state.put(service("kubernetes", namespace="default"))
    wire.state.put(service("web"))
    return wire


def empty_etcd(wire: Wire) -> None:
    """Leave what an API server writes to an empty database, without events."""
    del wire.state.objects["services"]["shop", "web"]
    wire.state.version += 1
    wire.there.clear()


def test_f05_a_second_list_after_5_s_confirms_that_the_only_service_is_gone() -> None:
    async def scenario() -> None:
        wire = one_service()
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(5)
            empty_etcd(wire)
            await back(wire)
            await until(lambda: phase(reflector) is Phase.HOLDING)
            began = asyncio.get_running_loop().time()
            assert reflector.status.message == (
                "1 of 2 objects is missing from the list; "
                "it is kept until a list 5 s later confirms it"
            )
            await asyncio.sleep(4.9)
            assert names(reflector) == {"kubernetes", "web"}
            await asyncio.sleep(0.2)
            assert names(reflector) == {"kubernetes"}
            assert phase(reflector) is Phase.FOLLOWING
            assert len([at for at in wire.lists if at > began]) == 1

    looptime.run(scenario())


def test_f05_the_only_service_stays_where_the_second_list_has_it() -> None:
    async def scenario() -> None:
        wire = one_service()
        async with reflecting(wire) as (reflector, events):
            await asyncio.sleep(5)
            web = wire.state.objects["services"]["shop", "web"]
            empty_etcd(wire)
            await back(wire)
            await asyncio.sleep(3)
            wire.state.objects["services"]["shop", "web"] = web
            await asyncio.sleep(60)
            assert names(reflector) == {"kubernetes", "web"}
            assert phase(reflector) is Phase.FOLLOWING
            assert not any(isinstance(event, Delete) for event in events)

    looptime.run(scenario())


def test_f05_a_watch_deletes_the_only_service_at_once() -> None:
    async def scenario() -> None:
        wire = one_service()
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(5)
            wire.state.delete("Service", "web", "shop")
            await asyncio.sleep(0.1)
            assert names(reflector) == {"kubernetes"}
            assert phase(reflector) is Phase.FOLLOWING

    looptime.run(scenario())
