"""FRRK8sConfiguration (v1beta1): settings of the programs themselves, in one object."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from resources.crds.schema_markers import doc
from resources.meta import Resource, Struct

NAME: Final = "config"
"""The name of the object that is used."""


class FRRK8sConfigurationSpec(Struct, frozen=True):
    """The specification."""

    log_level: Annotated[
        Literal["all", "debug", "info", "warn", "error", "none"] | None,
        doc("The least level that is logged; by default that of the programs' own options."),
    ] = None


class FRRK8sConfiguration(Resource, frozen=True):
    """Settings of all agents and operators; only the object ``config`` is used."""

    spec: Annotated[FRRK8sConfigurationSpec, doc("The settings.")] = msgspec.field(
        default_factory=FRRK8sConfigurationSpec
    )
