"""What happened to the core, written down, and played again.

* `lines`: inputs as JSON objects and back; passwords do not get through
* `recorder`: a file that is written while a speaker runs
* `replay`: a file played through the pure core, compared with what was noted on the way

docs/operations.md says how a recording is made and read.
"""

from speaker.recording.lines import BadRecording
from speaker.recording.recorder import Recorder
from speaker.recording.replay import Replay

__all__ = ["BadRecording", "Recorder", "Replay"]
