"""The Observable view of a table: its revision after each commit, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from reactivex import Observable
from reactivex import abc as rx
from reactivex.disposable import Disposable


class RevisionSignal:
    """Tells any number of subscribers; one that fails does not harm the others or the writer.

    Not a Subject: a Subject raises a subscriber's exception into the producer, and those behind it
    miss the item.
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
        """Tell all subscribers."""
        observer: Any
        for observer in self._observers:
            try:
                observer.on_next(revision)
            except Exception as error:  # noqa: BLE001  a subscriber must not harm the writer
                self._on_error(error)
