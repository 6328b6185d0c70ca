"""The router's YAML file, decoded strictly: an unknown key is an error.

`file` is the whole, `neighbor` and `bmp` its parts, `load` reads it. Opens no socket.
"""

from waggle.commands.router.config.file import INSTANCE, Config, route_to_wire
from waggle.commands.router.config.file_values import ConfigError
from waggle.commands.router.config.load import load

__all__ = ["INSTANCE", "Config", "ConfigError", "load", "route_to_wire"]
