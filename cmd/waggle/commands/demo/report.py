"""The output of the demo in the form of ``--output``: lines for people, or items for programs.

The demo that goes on prints its changes, each on its own. With ``--once``, ``--detach`` and ``--stop``
it has one answer, the sessions and routes of the router at its end.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from waggle import output
from waggle.demo_changes import OCCURRED, DemoItem, Snapshot, changes, line, text
from waggle.endless import print_error, print_item

KIND: Final = "DemoList"


class Report:
    """The output of one demo."""

    def __init__(self, form: str, *, is_endless: bool) -> None:
        """``is_endless``: changes are printed, and no answer."""
        self._form = form
        self._is_endless = is_endless
        self.is_document = output.is_document(form)

    def remark(self, sentence: str) -> None:
        """Print a sentence for people."""
        if not self.is_document:
            print(sentence, flush=True)

    def changed(self, before: Snapshot, after: Snapshot) -> None:
        """Print the changes between two snapshots."""
        for item in changes(before, after, _now()):
            if self.is_document:
                print_item(msgspec.to_builtins(item), self._form)
            else:
                print(text(item), flush=True)

    def answer(self, snapshot: Snapshot) -> str:
        """Return the answer with the router at its end: its routes, in a document its sessions, too."""
        if not self.is_document:
            return "".join(f"{line(route)}\n" for route in snapshot.routes)
        return self._document(changes(Snapshot(), snapshot, _now()))

    def occurred(self, sentence: str) -> None:
        """Print an answer of one sentence."""
        self.remark(sentence)
        if self.is_document:
            item = DemoItem(event_time=_now(), type=OCCURRED, message=sentence)
            print(self._document([item]), end="", flush=True)

    def failed(self, code: str, message: str) -> None:
        """Print why the demo ends, or does not begin; of several lines the first is the error."""
        if not self.is_document:
            for sentence in message.splitlines():
                output.complain("waggle demo", sentence)
        elif self._is_endless:
            print_error(code, message, self._form)
        else:
            error = {"code": code, "message": message}
            print(self._document((), [error]), end="", flush=True)

    def _document(self, items: Iterable[DemoItem], errors: Sequence[dict[str, str]] = ()) -> str:
        written = io.StringIO()
        members: list[Any] = [msgspec.to_builtins(item) for item in items]
        output.dump(output.document(KIND, members, errors), self._form, written)
        return written.getvalue()


def _now() -> datetime:
    return datetime.now(UTC)
