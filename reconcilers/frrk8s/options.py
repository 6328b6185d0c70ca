"""The options of the FRR-k8s dialect: in an agent and in ``waggle render``, and in the operator."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from resources.option_declarations import InvalidOption, Options, setting
from resources.option_spelling import list_items

OnConflict: TypeAlias = Literal["keep", "clear", "isolate"]
AUTO: Final = "auto"
"""In ``--always-block``: the prefixes of the cluster."""


class Frrk8sClusterOptions(Options, frozen=True):
    """The options that agents and the operator share."""

    namespace: Annotated[
        str,
        setting(
            "namespace of the FRRConfigurations that are used, and of their Secrets",
            flag="--frrk8s-namespace",
        ),
    ] = "frr-k8s-system"
    on_conflict: Annotated[
        OnConflict,
        setting(
            "while objects of a node are invalid or conflict. keep: the last good state stays; clear: "
            "the sessions end; isolate: each object, from the oldest on, that does not go with the "
            "others is not in effect",
            flag="--on-conflict",
        ),
    ] = "keep"


class Frrk8sOptions(Frrk8sClusterOptions, frozen=True):
    """Options of the agent and of ``waggle render``."""

    always_block: Annotated[
        tuple[str, ...],
        setting(
            "prefixes, separated by commas; repeatable. No route within is accepted from neighbors of "
            "FRRConfigurations, whatever they allow. auto: the pod CIDRs of all Nodes, and the "
            "ServiceCIDRs",
            flag="--always-block",
            metavar="CIDR|auto[,...]",
        ),
    ] = ()

    def __post_init__(self) -> None:
        """Check the prefixes. Raises `InvalidOption`."""
        try:
            _ = self.blocked
        except ValueError as error:
            raise InvalidOption("--always-block", str(error)) from None

    @property
    def blocked(self) -> tuple[str, ...]:
        """The prefixes in the option ``--always-block``, in canonical form, each once."""
        texts = [text for text in list_items(*self.always_block) if text != AUTO]
        if not texts:
            return ()
        # Every program reads the options, also where the dialect is off.
        from reconcilers.frrk8s.blocked import canonical_prefixes

        return canonical_prefixes(texts)

    @property
    def blocks_cluster(self) -> bool:
        """True if the option ``--always-block`` has the pod CIDRs of all Nodes and the ServiceCIDRs."""
        return AUTO in list_items(*self.always_block)
