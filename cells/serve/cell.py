"""The api cell: composes server and facts."""

from __future__ import annotations

import functools
from typing import NoReturn

from cells.api.resource import ApiPlain, PlainError, Query
from cells.dialects.cell import DialectCell
from cells.hive import Wiring, provide
from cells.hive.composition import Composition
from cells.serve.agent_resources import Facts, agent_resources
from cells.serve.facts import AgentFacts
from cells.serve.server import ApiServer


def paths_while_off(composition: Composition) -> tuple[ApiPlain, ...]:
    """Return the paths of API dialects that are off: each answers with status 503."""

    def refuse(text: str, _: Query) -> NoReturn:
        raise PlainError(503, text)

    return tuple(
        ApiPlain(path=path, read=functools.partial(refuse, text))
        for cell in composition.disabled()
        if isinstance(cell, DialectCell)
        for path, text in cell.entry.paths_while_off
    )


WIRING = Wiring(
    private=(provide(AgentFacts, as_=Facts),),
    invokes=(ApiServer,),
    contributes=(agent_resources, paths_while_off),
)
