"""The check of ``waggle doctor`` for FRR-k8s's objects: their conditions."""

from __future__ import annotations

from typing import Final

from reconcilers.dialect import condition_check
from resources.frrk8s import condition_types as types
from resources.frrk8s.kinds import FRR_CONFIGURATION

DIAGNOSIS: Final = condition_check(
    "frrk8s",
    "no condition of FRRConfigurations reports an error",
    {
        FRR_CONFIGURATION: {
            (types.ACCEPTED, "False"): "correct the field that the message names",
            (
                types.CONFLICTING,
                "True",
            ): "change or delete one of the objects that the message names",
            (
                types.PARTIALLY_APPLIED,
                "True",
            ): "see waggle status of the node that the message names",
        },
    },
)
