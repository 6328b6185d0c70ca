"""An agent that is killed at any moment of a load: the next one ends with exactly the wanted routes."""

from __future__ import annotations

import random

from speaker.api import NO_PATHS, BestPathChange, SelectionEnd, TableBegin, TableEnd
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    MAIN,
    ONE,
    TWO,
    Agent,
    hops,
    many,
    wire,
)

ROUTES = 20_000
PIECE = 500


def test_an_agent_killed_ten_times_leaves_what_is_wanted() -> None:
    rng = random.Random(4724)  # noqa: S311  the same each time
    writer = MemoryWriter()
    prefixes = many(ROUTES)
    wires = [wire(text) for text in prefixes]
    taken = set(rng.sample(range(ROUTES), 20))
    writer.foreign = {(MAIN, wires[n]) for n in taken}
    last = Agent(writer)
    for life in range(11):
        # The table of each life differs: some routes go, some have other next hops.
        wanted = rng.sample(range(ROUTES), ROUTES - 50) if life < 10 else range(ROUTES // 2)
        after = rng.choice((ONE, TWO, BOTH)) if life < 10 else BOTH
        last = agent = Agent(writer, deferred=True).start()
        agent.kernel.best_paths("main", [TableBegin()])
        pieces = [wanted[at : at + PIECE] for at in range(0, len(wanted), PIECE)]
        for piece in pieces[: rng.randrange(len(pieces)) if life < 10 else None]:
            change = BestPathChange(IPV4_UNICAST, NO_PATHS, after, tuple(wires[n] for n in piece))
            agent.kernel.best_paths("main", [change])
            if rng.random() < 0.5:
                agent.round()
            for _ in range(rng.randrange(3)):
                if writer.sent:
                    writer.step()
    last.kernel.best_paths("main", [TableEnd(), SelectionEnd()])
    last.kernel.end_deferral()
    for _ in range(8):
        last.settle()
    both = hops("10.88.0.1", "10.88.0.2")
    expected = {(MAIN, wires[n]): both for n in range(ROUTES // 2) if n not in taken}
    assert writer.kernel == expected
    assert last.kernel.installed.pending == 0
