"""Learns where torch keeps a tensor's facts, from probe tensors whose facts are known.

Offsets are found by looking for known numbers in the bytes of probe objects, then checked on other
tensors (views, more dims than fit inline, another dtype, parameters). Memory is read through
/proc/self/mem, where a wrong pointer is an error and not a crash. When anything disagrees, `layout()` is
None and the public, slower way is used.
"""

from __future__ import annotations

import functools
import os
import struct
from dataclasses import dataclass

import torch

from monograph import compat
from monograph.runtime.abi import LayoutWord

__all__ = ["Autograd", "autograd", "dtype_code", "layout"]

_OBJECT_BYTES, _IMPL_BYTES, _STORAGE_BYTES, _COUNTER_BYTES, _HISTORY_BYTES = 48, 208, 64, 32, 192


class _Unknown(Exception):
    """A probe did not find what it looked for."""


class _Memory:
    """Reads this process's memory; `_Unknown` where nothing is mapped."""

    def __init__(self) -> None:
        self.file = os.open("/proc/self/mem", os.O_RDONLY)

    def close(self) -> None:
        os.close(self.file)

    def words(self, address: int, size: int) -> tuple[int, ...]:
        return struct.unpack(f"<{size // 8}Q", self.read(address, size))

    def read(self, address: int, size: int) -> bytes:
        try:
            data = os.pread(self.file, size, address)
        except (OSError, OverflowError) as error:
            raise _Unknown(f"memory at {address:#x}") from error
        if len(data) != size:
            raise _Unknown(f"memory at {address:#x}")
        return data

    def word(self, address: int) -> int:
        return self.words(address, 8)[0]


def _find(words: tuple[int, ...], *values: int) -> int:
    """Byte offset of the only place where `values` stand in a row."""
    places = [at for at in range(len(words) - len(values) + 1) if words[at:at + len(values)] == values]
    if len(places) != 1:
        raise _Unknown(f"{values} found {len(places)} times")
    return 8 * places[0]


def _learn(memory: _Memory) -> dict[LayoutWord, int]:
    base = torch.frombuffer(bytearray(32000), dtype=torch.float32)     # its data pointer stands once in the storage
    probe = torch.as_strided(base, (7, 11, 13), (1009, 31, 2), 17)
    keys = compat.dispatch_keys(probe)
    impl = compat.impl_address(probe)
    storage = compat.storage_address(probe)
    words = memory.words(impl, _IMPL_BYTES)
    found = {
        LayoutWord.IMPL: _find(memory.words(id(probe), _OBJECT_BYTES), impl),
        LayoutWord.KEYS: _find(words, keys),
        LayoutWord.SIZES: _find(words, 7, 11, 13),
        LayoutWord.STRIDES: _find(words, 1009, 31, 2),
        LayoutWord.OFFSET: _find(words, 17),
        LayoutWord.STORAGE: _find(words, storage),
        LayoutWord.DATA: _find(memory.words(storage, _STORAGE_BYTES), base.data_ptr()),
        LayoutWord.PLAIN_KEYS: keys,
        LayoutWord.TENSOR_TYPE: id(torch.Tensor),
        LayoutWord.PARAMETER_TYPE: id(torch.nn.Parameter),
    }
    found[LayoutWord.RANK] = found[LayoutWord.SIZES] - 8         # SizesAndStrides: size, sizes, strides
    found[LayoutWord.INLINE_RANK] = (found[LayoutWord.STRIDES] - found[LayoutWord.SIZES]) // 8
    with torch.inference_mode():
        found[LayoutWord.INFERENCE_KEYS] = compat.dispatch_keys(torch.empty(1))
    items = [probe, base]
    found[LayoutWord.LIST_ITEMS] = _list_items(memory, items)
    found[LayoutWord.DTYPE] = _dtype_offset(memory)
    found[LayoutWord.VERSION], found[LayoutWord.VERSION_VALUE] = _version(memory, probe)
    return found


def _list_items(memory: _Memory, items: list[torch.Tensor]) -> int:
    expected = tuple(id(item) for item in items)
    for offset in range(16, list.__basicsize__, 8):
        try:
            if memory.words(memory.word(id(items) + offset), 16) == expected:
                return offset
        except _Unknown:
            continue
    raise _Unknown("items of a list")


def _dtype_offset(memory: _Memory) -> int:
    """The only 16-bit place that tells f32 (6), f64 (7), i64 (4) and bool (11) apart."""
    codes = {torch.float32: 6, torch.float64: 7, torch.int64: 4, torch.bool: 11}
    places = set(range(0, _IMPL_BYTES, 2))
    for dtype, code in codes.items():
        probe = torch.empty((), dtype=dtype)
        data = memory.read(compat.impl_address(probe), _IMPL_BYTES)
        places &= {at for at in range(0, _IMPL_BYTES, 2) if struct.unpack_from("<H", data, at)[0] == code}
    if len(places) != 1:
        raise _Unknown("dtype")
    return places.pop()


def _version(memory: _Memory, probe: torch.Tensor) -> tuple[int, int]:
    """The pointer that a view shares and an unrelated tensor does not, and the number behind it that counts."""
    view, other = probe[1:], torch.empty(3)
    mine, shared, foreign = (memory.words(compat.impl_address(t), _IMPL_BYTES) for t in (probe, view, other))
    storage = compat.storage_address(probe)
    candidates = []
    for at, word in enumerate(mine):
        if word != shared[at] or word == foreign[at] or word == storage:
            continue
        try:
            before = memory.read(word, _COUNTER_BYTES)
            version = compat.version(probe)
            probe.zero_()
            after = memory.read(word, _COUNTER_BYTES)
        except _Unknown:
            continue
        candidates += [
            (8 * at, offset) for offset in range(8, _COUNTER_BYTES, 4)
            if struct.unpack_from("<I", before, offset)[0] == version
            and struct.unpack_from("<I", after, offset)[0] == version + 1
        ]
    if len(candidates) != 1:
        raise _Unknown("version counter")
    return candidates[0]


def _verify(memory: _Memory, found: dict[LayoutWord, int]) -> None:
    """Read tensors of every kind the fast way and compare with the public one."""
    many = torch.zeros(2, 3, 1, 2, 5, 3, 2)
    parameter = torch.nn.Parameter(torch.zeros(5, 3, dtype=torch.bfloat16)[1:].t(), requires_grad=True)
    with torch.inference_mode():
        inference = torch.zeros(4, 4)[:, 1]
    for tensor in (many, many.permute(6, 5, 4, 3, 2, 1, 0), parameter, inference, torch.zeros(3, dtype=torch.int8)[2:]):
        impl = memory.word(id(tensor) + found[LayoutWord.IMPL])
        rank = memory.word(impl + found[LayoutWord.RANK])
        sizes, strides = impl + found[LayoutWord.SIZES], impl + found[LayoutWord.STRIDES]
        if rank > found[LayoutWord.INLINE_RANK]:
            sizes = memory.word(sizes)
            strides = sizes + 8 * rank
        storage = memory.word(impl + found[LayoutWord.STORAGE])
        offset = memory.word(impl + found[LayoutWord.OFFSET])
        pointer = memory.word(storage + found[LayoutWord.DATA]) + offset * tensor.element_size()
        keys = found[LayoutWord.INFERENCE_KEYS if tensor.is_inference() else LayoutWord.PLAIN_KEYS]
        counter = memory.word(impl + found[LayoutWord.VERSION])
        if tensor.is_inference():
            version_fits = counter == 0
        else:
            value = memory.read(counter + found[LayoutWord.VERSION_VALUE], 4)
            version_fits = struct.unpack("<I", value)[0] == compat.version(tensor)
        agrees = (
            rank == tensor.dim() and memory.words(sizes, 8 * rank) == tuple(tensor.shape)
            and memory.words(strides, 8 * rank) == tensor.stride() and pointer == tensor.data_ptr()
            and memory.word(impl + found[LayoutWord.KEYS]) == keys and version_fits
        )
        if not agrees:
            raise _Unknown(f"verification on {tensor.dtype} {tuple(tensor.shape)}")


@functools.cache
def layout() -> tuple[int, ...] | None:
    """The Layout table of `runtime.abi`, or None where this torch keeps things elsewhere."""
    try:
        memory = _Memory()
    except OSError:
        return None
    try:
        with torch.inference_mode(False), torch.no_grad():
            found = _learn(memory)
            _verify(memory, found)
    except (_Unknown, AttributeError, RuntimeError):
        return None
    finally:
        memory.close()
    return tuple(found[word] for word in LayoutWord)


@functools.cache
def dtype_code(dtype: torch.dtype) -> int:
    """The number behind a dtype in a tensor object; only with a layout."""
    words = layout()
    assert words is not None
    memory = _Memory()
    try:
        with torch.inference_mode(False):
            probe = torch.empty((), dtype=dtype, device="cpu")
        return struct.unpack("<H", memory.read(compat.impl_address(probe) + words[LayoutWord.DTYPE], 2))[0]
    finally:
        memory.close()


@dataclass(frozen=True)
class Autograd:
    """Where torch keeps whether a tensor that is no view requires grad."""

    history: int            # TensorImpl -> what autograd knows of it; 0 as long as nothing
    required: int           # there: the byte that is 1 where it was asked for
    nodes: tuple[int, ...]  # there: words that are 0 but for a tensor that was computed


@functools.cache
def autograd() -> Autograd | None:
    """None where this torch keeps it elsewhere."""
    if layout() is None:
        return None
    memory = _Memory()
    try:
        with torch.inference_mode(False), torch.enable_grad():
            return _learn_autograd(memory)
    except _Unknown:
        return None
    finally:
        memory.close()


def _learn_autograd(memory: _Memory) -> Autograd:
    plain = torch.zeros(3, device="cpu")
    without = memory.words(compat.impl_address(plain), _IMPL_BYTES)
    with_one = memory.words(compat.impl_address(plain.requires_grad_()), _IMPL_BYTES)
    places = [8 * at for at, (before, after) in enumerate(zip(without, with_one)) if before != after and not before]
    if len(places) != 1:
        raise _Unknown("what autograd knows of a tensor")
    leaves = _leaves()
    computed = [2 * leaves[0], (leaves[0] * leaves[1]).exp(), torch.zeros(4, device="cpu").mul_(leaves[0][0])]
    computed[1].retain_grad()

    def of(tensor: torch.Tensor) -> bytes:
        return memory.read(memory.word(compat.impl_address(tensor) + places[0]), _HISTORY_BYTES)

    asked, answered = [of(leaf) for leaf in leaves], [leaf.requires_grad for leaf in leaves]
    flags = [at for at in range(_HISTORY_BYTES) if [data[at] for data in asked] == answered]
    nodes = [at for at in range(8, _HISTORY_BYTES, 8)
             if not any(any(data[at:at + 8]) for data in asked) and all(any(of(t)[at:at + 8]) for t in computed)]
    if len(flags) != 1 or not nodes:
        raise _Unknown("whether a tensor requires grad")
    return Autograd(places[0], flags[0], tuple(nodes))


def _leaves() -> list[torch.Tensor]:
    """Tensors that nothing computed, of which autograd knows this and that; some require grad."""
    found = [torch.zeros(4, device="cpu").requires_grad_() for _ in range(6)]
    found.append(torch.nn.Parameter(torch.zeros(4, 2, device="cpu")))
    found[1].register_hook(lambda gradient: gradient)
    found[2].sum().backward()
    found[3].register_post_accumulate_grad_hook(lambda tensor: None)
    found[4].sum().backward()
    for at in (0, 4, 5):
        found[at].requires_grad_(False)
    found[5].requires_grad_(True)
    return [found[1], found[0], *found[2:], torch.zeros(2, device="cpu").requires_grad_().requires_grad_(False)]
