"""The streams of best paths of an engine: their readers' commands, and what each is sent in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, assert_never, final

from speaker.api import Multipath
from speaker.engine.best_path_stream import BestPathStream
from speaker.engine.inputs import BestPathsTaken, FollowBestPaths, Following, UnfollowBestPaths
from speaker.engine.instance import Instance
from speaker.engine.path_sets import PathSets
from speaker.peer.actions import EndBestPaths, SendBestPaths
from speaker.peer.engine_context import EngineContext

Fault: TypeAlias = Callable[[Exception, str, str], None]
"""Reports an error in a place of an instance."""


@final
class BestPathStreams:
    """The streams of an engine, by the number of their reader."""

    def __init__(
        self, context: EngineContext, instances: Mapping[str, Instance], report: Fault
    ) -> None:
        """Start without readers; ``instances`` are the engine's, by name, and are read only."""
        self._context = context
        self._instances = instances
        self._report = report
        self._sets = PathSets()
        self.streams: dict[int, BestPathStream] = {}
        """By the number of the reader; read after each input."""

    def command(self, item: Following) -> None:
        """Handle what a reader does."""
        match item:
            case FollowBestPaths(reader, instance, multipath):
                self._follow(reader, instance, multipath)
            case UnfollowBestPaths(reader):
                self._unfollow(reader)
            case BestPathsTaken(reader, batches):
                stream = self.streams.get(reader)
                if stream is not None:
                    stream.taken(batches)
            case _:
                assert_never(item)

    def _follow(self, reader: int, instance: str, multipath: Multipath) -> None:
        self._unfollow(reader)
        stream = self.streams[reader] = BestPathStream(
            reader, instance, multipath, self._sets, self._fail
        )
        known = self._instances.get(instance)
        if known is not None:
            stream.begin(known)

    def _unfollow(self, reader: int) -> None:
        stream = self.streams.pop(reader, None)
        if stream is not None:
            stream.detach()

    def stop(self) -> None:
        """Send nothing any more: the speaker stops."""
        for reader in list(self.streams):
            self._unfollow(reader)

    def instance_up(self, instance: Instance) -> None:
        """Begin the streams of an instance that was created, or created again."""
        for stream in self.streams.values():
            if stream.instance == instance.name:
                stream.begin(instance)

    def instance_down(self, name: str) -> None:
        """Handle the removal of an instance."""
        for stream in self.streams.values():
            if stream.instance == name:
                stream.removed()

    @property
    def needs_work(self) -> bool:
        """Whether anything can be sent."""
        for stream in self.streams.values():  # noqa: SIM110  read after each input
            if stream.ready:
                return True
        return False

    def work(self) -> None:
        """Send each reader what it has room for, at most one batch of look-ups."""
        for stream in list(self.streams.values()):
            while stream.ready:
                try:
                    is_urgent, looked_up = stream.is_urgent, stream.looks_up
                    items = stream.batch()
                except Exception as error:  # noqa: BLE001  fence: other readers and all peers go on
                    self._fail(stream, error)
                    break
                if items:
                    stream.unread.append(is_urgent)
                    self._context.out.append(SendBestPaths(stream.reader, tuple(items)))
                if not items or (looked_up and not is_urgent):
                    # Of urgent changes that were undone nothing is sent, and there may be very many.
                    break

    def _fail(self, stream: BestPathStream, error: Exception) -> None:
        """End a stream whose changes cannot be sent; its reader may open another stream."""
        self._report(error, "following best paths", stream.instance)
        self._unfollow(stream.reader)
        self._context.out.append(EndBestPaths(stream.reader))

    def describe(self) -> Iterator[str]:
        """Iterate over the state of each stream as text, for the digest."""
        for reader, stream in sorted(self.streams.items()):
            yield f"{reader} {stream.instance} {len(stream.unread)} {stream.waiting}"
