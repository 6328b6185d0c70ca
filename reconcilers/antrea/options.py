"""The options of the Antrea dialect: in an agent and in ``waggle render``, and in the operator."""

from __future__ import annotations

from typing import Annotated

from reconcilers.import_options import METAVAR, TEXT, ImportOptions
from resources.option_declarations import Options, setting


class AntreaOperatorOptions(Options, frozen=True):
    """Options of the operator; agents have them too."""

    next_fields: Annotated[
        bool,
        setting(
            "accept fields of BGPPolicy that are proposed for later releases of Antrea: timers, "
            "gracefulRestartEnabled, bfd, and AS numbers of four octets"
        ),
    ] = False


class AntreaOptions(AntreaOperatorOptions, ImportOptions, frozen=True):
    """Options of the agent and of ``waggle render``."""

    namespace: Annotated[
        str,
        setting("namespace of the Secret antrea-bgp-passwords"),
    ] = "kube-system"
    egress: Annotated[
        bool,
        setting("advertise egress IPs, for policies with advertisements.egress"),
    ] = True
    ready_endpoints: Annotated[
        bool,
        setting(
            "with traffic policy Local, only endpoints are used that are ready, or that serve while "
            "they terminate; by default all, as in Antrea"
        ),
    ] = False
    imports: Annotated[tuple[str, ...], setting(TEXT, flag="--antrea-import", metavar=METAVAR)] = ()

    def __post_init__(self) -> None:
        """Check the prefixes. Raises `InvalidOption`."""
        self.check_imports("--antrea-import")
