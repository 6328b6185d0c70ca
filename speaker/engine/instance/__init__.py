"""One BGP router, by concern: its peers and sessions, who is at which address, who is told what."""

from speaker.engine.instance.instance import CONFIGURATION, DECONFIGURED, Instance
from speaker.engine.instance.member import Member

__all__ = ["CONFIGURATION", "DECONFIGURED", "Instance", "Member"]
