"""The settings of all sessions in a file, so that the next process begins without an agent.

It has keys of authentication: a directory of memory (/run) is the place for it, and its mode is 0600.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconcilers.bfd.process.process_messages import CODEC, SetSessions, Wanted
from reconcilers.process.codec import ProtocolError
from speaker.bfd.session_values import SessionKey, Settings

SETTINGS: Final = "settings"
SESSIONS: Final = "sessions"
"""Names of the files of a directory: of this module, and of `speaker.bfd.state_file`."""
_LOCK: Final = "lock"


class SettingsFile:
    """The file, in a directory that belongs to one process."""

    def __init__(self, directory: Path) -> None:
        """Make and lock the directory. Raises `OSError`: another process has it."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = directory / SETTINGS
        self._lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def read(self) -> dict[SessionKey, Settings]:
        """Return the settings of BFD sessions that the process before wrote, if they can be read."""
        try:
            messages = list(CODEC.decoder().feed(self._path.read_bytes()))
        except (OSError, ProtocolError):
            return {}
        return {
            wanted.key: wanted.settings
            for message in messages
            if isinstance(message, SetSessions)
            for wanted in message.sessions
        }

    def write(self, sessions: Mapping[SessionKey, Settings]) -> None:
        """Replace the file of the BFD sessions' settings. Raises `OSError`."""
        octets = CODEC.encode(SetSessions(tuple(Wanted(*item) for item in sessions.items())))
        made = self._path.with_name(f".{self._path.name}")
        made.unlink(missing_ok=True)
        made.touch(mode=0o600)
        made.write_bytes(octets)
        made.replace(self._path)
