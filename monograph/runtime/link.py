"""Places ELF objects in memory and connects them: the loader.

    Image ::= [text, stubs: r-x] [rodata, global offset table: r--] [data: rw-]      one mapping, page-aligned parts

All objects of a program are linked at once. A name is looked up in the object itself (local
symbols), among the global symbols of all objects, then in `externals`. Pages are never writable
and executable at the same time: they are filled as rw-, then protected.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from monograph.errors import CompileError
from monograph.runtime import elf
from monograph.runtime.relocate import MACHINES, STUB_BYTES, Fix, Machine

__all__ = ["Image", "link"]

_HOST = {"x86_64": elf.X86_64, "aarch64": elf.AARCH64}.get(platform.machine(), 0)
_CACHE_LINE = 64
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mprotect.restype = ctypes.c_int


@dataclass
class Image:
    """Loaded code: `symbols` has the address of every global name. The memory lives as long as this object."""

    symbols: dict[str, int]
    size: int
    _mapping: mmap.mmap


def link(
    objects: Sequence[bytes], externals: Mapping[str, int], redirect: Mapping[str, str] | None = None
) -> Image:
    """Load `objects`; CompileError names an unknown symbol or relocation.

    `redirect` {a: b}: where an object leaves `a` undefined and another object defines `b`, `b` is meant.
    """
    linker = _Linker([elf.read(data) for data in objects], externals, redirect or {})
    return linker.link()


@dataclass
class _Linker:
    objects: list[elf.Object]
    externals: Mapping[str, int]
    redirect: Mapping[str, str]
    placed: dict[tuple[int, int], int] = field(default_factory=dict)      # (object, section) -> offset in the image
    globals: dict[str, int] = field(default_factory=dict)                 # name -> offset in the image, or address
    parts: list[tuple[int, int, int]] = field(default_factory=list)       # offset, size, protection
    stubs: dict[int, int] = field(default_factory=dict)                   # address -> offset of its stub
    got: dict[int, int] = field(default_factory=dict)                     # address -> offset of its entry

    def link(self) -> Image:
        if _HOST not in MACHINES:
            raise CompileError(f"no loader for {platform.machine()}")
        for item in self.objects:
            if item.machine != _HOST:
                raise CompileError(f"object for ELF machine {item.machine}, but this machine is {platform.machine()}")
        machine = MACHINES[_HOST]
        size = self._place()
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        mapping = mmap.mmap(-1, size, flags=private, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        image = np.frombuffer(mapping, np.uint8)
        base = image.ctypes.data
        self._copy(image)
        self._define(base)
        for number in range(len(self.objects)):
            self._relocate(number, machine, image, base)
        self._protect(base)
        return Image(dict(self.globals), size, mapping)

    def _place(self) -> int:
        """Give every section an offset; returns the size of the image."""
        externals = sum(symbol.section == elf.UNDEFINED for item in self.objects for symbol in item.symbols)
        symbols = sum(len(item.symbols) for item in self.objects)
        cursor = 0
        for group, spare, protection in (
            ("text", externals * STUB_BYTES, _PROT_READ | _PROT_EXEC), ("rodata", symbols * 8, _PROT_READ),
            ("data", 0, _PROT_READ | _PROT_WRITE),
        ):
            start = cursor
            for number, item in enumerate(self.objects):
                for section in item.sections:
                    if section.group == group:
                        cursor = _round_up(cursor, max(section.align, _CACHE_LINE))
                        self.placed[number, section.number] = cursor
                        cursor += section.size
            cursor = _round_up(cursor, STUB_BYTES)
            if group == "text":
                self._next_stub = cursor
            elif group == "rodata":
                self._next_entry = cursor
            cursor = _round_up(cursor + spare, mmap.PAGESIZE)
            if cursor > start:
                self.parts.append((start, cursor - start, protection))
        return max(cursor, mmap.PAGESIZE)

    def _copy(self, image: np.ndarray) -> None:
        for number, item in enumerate(self.objects):
            for section in item.sections:
                if section.content is not None:
                    at = self.placed[number, section.number]
                    image[at:at + section.size] = np.frombuffer(section.content, np.uint8)

    def _define(self, base: int) -> None:
        """Collect the global symbols of all objects; a strong definition wins over a weak one."""
        weak: set[str] = set()
        for number, item in enumerate(self.objects):
            for symbol in item.symbols:
                if symbol.is_local or symbol.section == elf.UNDEFINED or not symbol.name:
                    continue
                known = symbol.name in self.globals
                if known and symbol.is_weak:
                    continue
                if known and symbol.name not in weak:
                    raise CompileError(f"symbol {symbol.name!r} is defined in two objects")
                self.globals[symbol.name] = self._defined(number, symbol, base)
                (weak.add if symbol.is_weak else weak.discard)(symbol.name)

    def _defined(self, number: int, symbol: elf.Symbol, base: int) -> int:
        if symbol.section == elf.ABSOLUTE:
            return symbol.value
        try:
            return base + self.placed[number, symbol.section] + symbol.value
        except KeyError:
            raise CompileError(f"symbol {symbol.name!r} stands in a section that is not loaded") from None

    def _addresses(self, number: int, base: int, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of every symbol of an object: its address, and whether it lies outside the image."""
        item = self.objects[number]
        own = {symbol.name for symbol in item.symbols if symbol.section != elf.UNDEFINED}
        addresses = np.zeros(len(item.symbols), np.int64)
        outside = np.zeros(len(item.symbols), bool)
        for index in used.tolist():
            symbol = item.symbols[index]
            if symbol.section == elf.UNDEFINED:
                addresses[index], outside[index] = self._lookup(symbol, own)
            elif symbol.is_local:
                addresses[index] = self._defined(number, symbol, base)
            else:
                addresses[index] = self.globals[symbol.name]
        return addresses, outside

    def _lookup(self, symbol: elf.Symbol, own: set[str]) -> tuple[int, bool]:
        name = symbol.name
        other = self.redirect.get(name)
        if other is not None and other in self.globals and other not in own:
            return self.globals[other], False
        if name in self.globals:
            return self.globals[name], False
        try:
            return self.externals[name], True
        except KeyError:
            if symbol.is_weak:
                return 0, True
            raise CompileError(f"native code refers to {name!r}, which no library provides") from None

    def _relocate(self, number: int, machine: Machine, image: np.ndarray, base: int) -> None:
        item = self.objects[number]
        if not item.relocations:
            return
        used = np.unique(np.concatenate([table.symbol for table in item.relocations]))
        addresses, outside = self._addresses(number, base, used)
        for table in item.relocations:
            at = table.offset + self.placed[number, table.section]
            kinds = np.unique(table.type).tolist()
            for kind in kinds:
                fix = machine.fixes.get(kind)
                if fix is None:
                    raise CompileError(f"{machine.name} relocation type {kind} is not supported by the loader")
                chosen = slice(None) if len(kinds) == 1 else table.type == kind
                places, symbols = at[chosen], table.symbol[chosen]
                end = self.placed[number, table.section] + _size(item, table.section)
                if len(places) and int(places.max()) + fix.width > end:
                    raise CompileError("ELF relocation outside its section")
                target = self._targets(fix, machine, symbols, addresses, outside, image, base)
                fix.write(image, places, target + table.addend[chosen], places + base)

    def _targets(
        self, fix: Fix, machine: Machine, symbols: np.ndarray, addresses: np.ndarray, outside: np.ndarray,
        image: np.ndarray, base: int,
    ) -> np.ndarray:
        """S of every relocation: the symbol, its stub or its table entry."""
        if fix.target == "symbol" or (fix.target == "call" and not outside[symbols].any()):
            return addresses[symbols]
        chosen = addresses.copy()
        for index in np.unique(symbols).tolist():
            address = int(addresses[index])
            if fix.target == "got":
                chosen[index] = base + self._entry(address, image)
            elif outside[index]:
                chosen[index] = base + self._stub(address, machine, image)
        return chosen[symbols]

    def _stub(self, address: int, machine: Machine, image: np.ndarray) -> int:
        at = self.stubs.get(address)
        if at is None:
            at = self.stubs[address] = self._next_stub
            self._next_stub += STUB_BYTES
            image[at:at + STUB_BYTES] = np.frombuffer(machine.stub(address), np.uint8)
        return at

    def _entry(self, address: int, image: np.ndarray) -> int:
        at = self.got.get(address)
        if at is None:
            at = self.got[address] = self._next_entry
            self._next_entry += 8
            image[at:at + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
        return at

    def _protect(self, base: int) -> None:
        for offset, size, protection in self.parts:
            if protection & _PROT_WRITE:
                continue
            if _libc.mprotect(base + offset, size, protection) != 0:
                raise CompileError(f"the system refused to protect code pages: {os.strerror(ctypes.get_errno())}")
        if _HOST == elf.AARCH64 and self.parts:      # its instruction cache does not see stores
            clear = ctypes.CDLL("libgcc_s.so.1")["__clear_cache"]
            clear(ctypes.c_void_p(base), ctypes.c_void_p(base + self.parts[0][1]))


def _size(item: elf.Object, number: int) -> int:
    return next(section.size for section in item.sections if section.number == number)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
