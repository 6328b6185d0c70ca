"""The pure core as a whole: instances with their peers and RIBs, behind one function.

* `engine`: `Engine.handle(input, now) -> actions`
* `inputs`: all inputs of the core, as values (its output: `speaker.peer.actions`)
* `instance`: one BGP instance; `established_peer`, `stale_routes`, `prefix_limits`,
  `selection_deferral`, `ribs`, `export_rules`: its parts
* `effect_of_change`: the effect of a changed configuration on a session
* `observer`, `monitoring`: BMP
* `views`: the state as values; `configuration`: the configuration, read back; `digest`: checksums

Never a socket, a clock or chance: docs/speaker.md has the contract with the shell.
"""

from speaker.engine.engine import Engine

__all__ = ["Engine"]
