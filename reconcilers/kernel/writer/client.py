"""The agent's end of the connection to the writer."""

from __future__ import annotations

from reconcilers.kernel.writer.protocol import CODEC, Message
from reconcilers.kernel.writer.protocol_messages import Health, Hello
from reconcilers.process.client import ProcessClient


class WriterClient(ProcessClient[Message]):
    """Sends and receives messages; a `KernelWriter`. One object for all connections, one at a time."""

    def __init__(self, program: str) -> None:
        """``program``: name and version, for the log of the writer."""
        super().__init__(CODEC, Hello(program))

    def _pass_on(self, message: Message) -> None:
        if isinstance(message, Health):
            self.problem = message.problem
        super()._pass_on(message)
