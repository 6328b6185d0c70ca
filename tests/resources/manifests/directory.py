"""A directory of manifests, and the events of its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from resources.manifests.files import scan
from resources.manifests.settling import QUIET_SECONDS
from resources.manifests.source import ManifestsSource
from resources.meta import Resource
from resources.source import Delete, Event, Replace, SourceProblem, Upsert
from tests.support.kinds import KINDS, NODE


def node(name: str, label: str = "x") -> str:
    """Return a Node's manifest."""
    return f"apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  labels: {{l: {label}}}\n"


class MessageCounts:
    """The labels of the Nodes, as a source's events give them."""

    def __init__(self, source: ManifestsSource) -> None:
        self.labels: dict[str, str] = {}
        self.events: list[Event] = []
        self.problems: tuple[SourceProblem, ...] = ()
        source.events(NODE).subscribe(self._event)
        source.problems.subscribe(self._problems)

    def _event(self, event: Event) -> None:
        self.events.append(event)
        match event:
            case Replace(objects):
                self.labels = {row.metadata.name: row.metadata.labels["l"] for row in objects}
            case Upsert(row):
                self.labels[row.metadata.name] = row.metadata.labels["l"]
            case Delete(key):
                del self.labels[key[1]]

    def _problems(self, problems: tuple[SourceProblem, ...]) -> None:
        self.problems = problems


class Directory:
    """A source of one directory, read once, whose clock stands until `pass_`."""

    def __init__(
        self,
        directory: Path,
        hold: float = 60.0,
        restored: Mapping[str, Sequence[tuple[str, Resource]]] | None = None,
    ) -> None:
        self.directory = directory
        self.now = 1000.0
        self.source = ManifestsSource([directory], KINDS, hold=hold, clock=lambda: self.now)
        self.observer = MessageCounts(self.source)
        if restored is not None:
            self.source.restore(restored)
        for _ in self.source.read_found(scan([str(directory)])):
            pass

    def pass_(self, seconds: float) -> None:
        """Let time pass, without a scan."""
        self.now += seconds
        self.source.read_settled()

    def scan(self) -> None:
        """Scan the tree now, without waiting for changed files to settle."""
        self.source.compare(scan([str(self.directory)]))

    def rescan(self) -> None:
        """Scan, wait until changed files have settled, and read them."""
        self.scan()
        self.pass_(QUIET_SECONDS)

    def stay(self, seconds: float) -> None:
        """Let time pass with a scan every five seconds."""
        until = self.now + seconds
        while self.now < until:
            self.pass_(min(5.0, until - self.now))
            self.rescan()

    @property
    def messages(self) -> list[str]:
        """The problems."""
        return [str(problem) for problem in self.observer.problems]


def read(directory: Path) -> tuple[Directory, MessageCounts]:
    """Read a directory once; `rescan` reads what changed."""
    source = Directory(directory)
    return source, source.observer


def nodes(names: Iterable[str], label: str = "x") -> str:
    return "---\n".join(node(name, label) for name in names)


NAMES = [f"n{number}" for number in range(10)]
