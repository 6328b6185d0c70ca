"""The api cell: composes server and facts.

Kept apart from `cells.api`'s own module, which the command line imports and which has to be cheap.
"""

from __future__ import annotations

from cells.api.agent_resources import Facts, agent_resources
from cells.api.facts import AgentFacts
from cells.api.server import ApiServer
from cells.hive import Wiring, provide

WIRING = Wiring(
    private=(provide(AgentFacts, as_=Facts),),
    invokes=(ApiServer,),
    contributes=(agent_resources,),
)
