"""Python's garbage collector while calls are captured.

A capture makes tens of thousands of objects that live until it ends, and go without the collector. Seen by it twice
they count as old, and a few captures later all objects of the process are looked through for their sake, which takes
longer than a capture. So it comes rarely.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rarely_collecting"]

YOUNG = 50_000          # objects that hold others, more than were freed, between two collections: some 10 MB

_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_before: list[tuple[int, int, int]] = []        # thresholds that the captures under way have found: the first counts


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """A collector that is off (threshold 0), or comes still more rarely, is left alone."""
    with _lock:
        found = gc.get_threshold()
        _before.append(found)
        if 0 < found[0] < YOUNG:
            gc.set_threshold(YOUNG, *found[1:])
    try:
        yield
    finally:
        with _lock:
            if len(_before) == 1 and gc.get_threshold()[0] == YOUNG:       # else the program has set it
                gc.set_threshold(*_before[0])
            _before.pop()
