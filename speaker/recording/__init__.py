"""A run of the core, written down and played again: what a bug report needs.

* `lines`: the file's lines as values, and the inputs as JSON
* `recorder`: an engine whose every input is written down
* `player`: the same inputs given to another engine, and where it does otherwise

Pure: lines come in and go out as octets, who opens files is elsewhere. A password never gets into
a recording.
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
