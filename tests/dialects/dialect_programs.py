"""The cells of the test dialects, the programs with them, and `waggle` with them.

``python -m tests.dialects.dialect_programs agent|operator|waggle ARGUMENTS`` runs a program.
"""

import sys

from cells.agent import agent_cells
from cells.operator.cells import operator_cells
from tests.dialects.beacon.entry import DIALECT as BEACON
from tests.dialects.lighthouse.dialect import NODES, LighthouseDialect
from tests.support.cells import entry
from waggle.__main__ import main as waggle
from waggle.dialects import DIALECTS, Dialects
from waggle_agent.__main__ import main as agent
from waggle_operator.__main__ import main as operator

TEST_DIALECTS = (BEACON, entry(LighthouseDialect, NODES))
AGENT = agent_cells(*DIALECTS, *TEST_DIALECTS)
OPERATOR = operator_cells(*DIALECTS, *TEST_DIALECTS)
WAGGLE = Dialects((*DIALECTS, *TEST_DIALECTS))


def main(program: str, arguments: list[str]) -> int:
    """Run a program with the test dialects."""
    match program:
        case "agent":
            return agent(arguments, cells=AGENT)
        case "operator":
            return operator(arguments, cells=OPERATOR)
        case _:
            return waggle(arguments, WAGGLE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
