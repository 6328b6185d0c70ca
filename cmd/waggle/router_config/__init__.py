"""The router's YAML file, decoded strictly: an unknown key is an error.

`file` is the whole, `neighbor` and `bmp` its parts, `load` reads it. Opens no socket.
"""

from waggle.router_config.file import INSTANCE, Config, route_to_wire
from waggle.router_config.file_values import ConfigError
from waggle.router_config.load import load

__all__ = ["INSTANCE", "Config", "ConfigError", "load", "route_to_wire"]
