"""BFD of a CiliumBGPPeerConfig, as cilium#48251 proposes it; its shape is not agreed. Pure."""

from __future__ import annotations

from typing import Final

from resources.cilium.peerconfig import Bfd
from speaker.api import BfdProfile

FLAG: Final = "--cilium-next-fields"
IGNORED: Final = f"is proposed for a later release of the API, and ignored without {FLAG}"


def bfd_profile(bfd: Bfd | None) -> BfdProfile | None:
    """Return the BFD settings of the peers of a CiliumBGPPeerConfig; None: they have no BFD."""
    if bfd is None or bfd.enabled is False:
        return None
    return BfdProfile(
        receive_interval=bfd.receive_interval_milliseconds,
        transmit_interval=bfd.transmit_interval_milliseconds,
        detect_multiplier=bfd.detection_multiplier,
    )
