"""Streams that several subscribers share, isolated from each other.

A reactivex Subject raises a subscriber's exception into the producer, and the subscribers behind it
miss the item. `isolated` confines it to that subscriber, `guarded` hands it to the subscriber's job.
Nothing here uses a scheduler or a thread: an item is delivered in the producer's turn of the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

T = TypeVar("T")
P = ParamSpec("P")


def log_failure(error: Exception) -> None:
    """Log the exception of a subscriber of a stream."""
    logging.getLogger("waggle.resources").error("a subscriber failed", exc_info=error)


def isolated(
    source: Observable[T], report: Callable[[Exception], None] = log_failure
) -> Observable[T]:
    """Return the stream with each subscriber isolated.

    An exception in a subscriber ends its own subscription and goes to ``report``; the producer and the
    other subscribers are unaffected. So does the error of the stream where a subscriber does not
    handle it.
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = SingleAssignmentDisposable()

        def fenced(deliver: Callable[P, None]) -> Callable[P, None]:
            def call(*arguments: P.args, **named: P.kwargs) -> None:
                try:
                    deliver(*arguments, **named)
                except Exception as error:  # noqa: BLE001 - the fence between subscribers
                    subscription.dispose()
                    report(error)

            return call

        subscription.disposable = source.subscribe(
            fenced(observer.on_next),
            fenced(observer.on_error),
            fenced(observer.on_completed),
            scheduler=scheduler,
        )
        return subscription

    return Observable(subscribe)


def guarded(
    handle: Callable[[T], None], on_error: Callable[[BaseException], None]
) -> Callable[[T], None]:
    """Return a stream's subscriber that passes its exceptions to ``on_error`` and stays subscribed."""

    def on_next(item: T) -> None:
        try:
            handle(item)
        except Exception as error:  # noqa: BLE001 - the fence between a source and its subscriber
            on_error(error)

    return on_next
