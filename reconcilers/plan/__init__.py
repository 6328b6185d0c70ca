"""Effects of a change of the configuration on each node, before it is made.

`NodeState` is the intent of a node: instances, sessions, routes, problems. `node_plan` compares two
states of a node, by the speaker's table of what resets a session (`speaker.engine.effect_of_change`).
`Plan` joins the plans of all nodes. Pure; `reconcilers.plan_manifests` compiles the states.
"""

from reconcilers.plan.changes import FieldChange, NodePlan, SessionChange
from reconcilers.plan.fleet_plan import MaxWithdraw, Plan
from reconcilers.plan.node_plan import node_plan
from reconcilers.plan.node_state import NodeState, PeerState, node_state
from reconcilers.plan.transfer import masked, state_items, state_of

__all__ = [
    "FieldChange",
    "MaxWithdraw",
    "NodePlan",
    "NodeState",
    "PeerState",
    "Plan",
    "SessionChange",
    "masked",
    "node_plan",
    "node_state",
    "state_items",
    "state_of",
]
