"""The pure core as a whole: instances with their peers and RIBs, behind one function.

* `engine`: `Engine.handle(input, now) -> actions`
* `inputs`: everything that can happen, as values (`speaker.peer.actions` is the way out)
* `instance`, `ribs`: one router
* `changes`: what a changed configuration does to a session
* `views`: the state, for people; `configuration`: the settings, for reconcilers

Never a socket, a clock or chance: docs/speaker.md has the contract with the shell.
"""

from speaker.engine.engine import Engine

__all__ = ["Engine"]
