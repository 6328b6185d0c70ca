"""A run of the core, recorded and replayed: the attachment of a bug report.

* `lines`: the lines of the file as values, and the inputs as JSON
* `recorder`: an engine whose every input is recorded
* `player`: the same inputs given to another engine, and the first difference

Pure: lines are octets in and out; files are opened elsewhere. A recording never holds a password.
"""

from speaker.recording.lines import FORMAT, BadRecording, Header
from speaker.recording.player import Difference, Player, Step
from speaker.recording.recorder import DEFAULT_LIMIT, Recorder, Sink

__all__ = [
    "DEFAULT_LIMIT",
    "FORMAT",
    "BadRecording",
    "Difference",
    "Header",
    "Player",
    "Recorder",
    "Sink",
    "Step",
]
