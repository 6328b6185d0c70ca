"""One BGP router, by concern: its peers and sessions, who is at which address, who is told what."""

from speaker.engine.instance.established_peer import EstablishedPeer
from speaker.engine.instance.instance import CONFIGURATION, DECONFIGURED, Instance

__all__ = ["CONFIGURATION", "DECONFIGURED", "EstablishedPeer", "Instance"]
