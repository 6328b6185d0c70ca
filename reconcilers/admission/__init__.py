"""Reviews changes before they are made: which problems they would cause, and on which nodes.

`Reviewer` compares the problems of all nodes without and with a change, and decides as an admission
webhook does. ``waggle check`` lists the problems of all nodes in manifests. Pure, but for the trial
transactions of the database, which no other reader sees.
"""

from reconcilers.admission.cluster_problems import node_groups
from reconcilers.admission.hypothetical_nodes import (
    Selectors,
    hypothetical_label_sets,
    node_selectors,
    node_with,
    selects,
)
from reconcilers.admission.review import Request, Reviewer, Verdict

__all__ = [
    "Request",
    "Reviewer",
    "Selectors",
    "Verdict",
    "hypothetical_label_sets",
    "node_groups",
    "node_selectors",
    "node_with",
    "selects",
]
