"""The options of the dialect, alone: the programs import them for their flags."""

from typing import Annotated

from resources.option_declarations import Options, setting


class BeaconOptions(Options, frozen=True):
    community: Annotated[int, setting("community of all routes, as a number")] = 1
