"""The cells of Cilium's BGP APIs."""

from __future__ import annotations

from cells.dialects.cell import agent_cell, operator_cell
from reconcilers.cilium.dialect import CiliumDialect

AGENT = agent_cell(CiliumDialect, enabled=True)
OPERATOR = operator_cell(CiliumDialect, enabled=True)
