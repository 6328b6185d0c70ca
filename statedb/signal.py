"""The Observable view of a table: emits its revision after each commit, no rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from reactivex import Observable
from reactivex import abc as rx
from reactivex.disposable import Disposable


class RevisionSignal:
    """Emits to any number of subscribers; an exception in one affects neither others nor the writer.

    Not a Subject: a Subject raises a subscriber's exception into the producer, and the subscribers
    behind it miss the item.
    """

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._observers: tuple[rx.ObserverBase[int], ...] = ()
        self._lock = threading.Lock()
        self._on_error = on_error
        self.observable: Observable[int] = Observable(self._subscribe)

    def _subscribe(
        self, observer: rx.ObserverBase[int], scheduler: rx.SchedulerBase | None = None
    ) -> rx.DisposableBase:
        del scheduler  # emissions happen in the committing thread
        with self._lock:
            self._observers = (*self._observers, observer)

        def dispose() -> None:
            with self._lock:
                self._observers = tuple(o for o in self._observers if o is not observer)

        return Disposable(dispose)

    def emit(self, revision: int) -> None:
        """Call all subscribers with a revision."""
        observer: Any
        for observer in self._observers:
            try:
                observer.on_next(revision)
            except Exception as error:  # noqa: BLE001  a subscriber must not affect the writer
                self._on_error(error)
