"""Memory as measured: peak of live intermediate bytes during a call, and peak resident set of a process."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator

import torch
from torch.profiler import ProfilerActivity, profile

__all__ = ["peak_intermediates", "peak_resident"]


def peak_intermediates(function: Callable[[], object], forget: Callable[[], object] = lambda: None) -> int:
    """Most bytes that torch's CPU allocator held at one moment of a call for anything but the call's results.

    Taken from the allocator's own events, so it counts arenas, library scratch and whatever eager keeps alive.
    `forget` is called before: it gives back memory kept between calls, so that the call has to ask for it again.
    """
    function()
    forget()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = function()
        held = {tensor.untyped_storage().data_ptr() for tensor in _tensors(result, set())}
    events = sorted(_allocations(profiler.profiler.kineto_results.experimental_event_tree()))
    last = {address: number for number, (_, address, size) in enumerate(events) if size > 0}
    results = {number for address, number in last.items() if address in held}
    live: dict[int, int] = {}
    total = peak = 0
    for number, (_, address, size) in enumerate(events):
        if number in results:
            continue
        if size > 0:
            live[address] = size
            total += size
        else:
            total -= live.pop(address, 0)
        peak = max(peak, total)
    return peak


def _tensors(thing: object, seen: set[int]) -> Iterator[torch.Tensor]:
    """Every tensor reachable from a result: through containers and through objects such as key-value caches."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, dict):
        for entry in thing.values():
            yield from _tensors(entry, seen)
    elif isinstance(thing, (list, tuple)):
        for entry in thing:
            yield from _tensors(entry, seen)
    elif hasattr(thing, "__dict__"):
        yield from _tensors(vars(thing), seen)


def _allocations(events: list) -> Iterator[tuple[int, int, int]]:
    """(time, address, bytes: negative for a free) of every allocator event in a profiler tree."""
    for event in events:
        if event.name == "[memory]":
            yield event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size
        yield from _allocations(event.children)


def peak_resident() -> int:
    """Peak resident set of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
