"""Reads ELF64 relocatable objects, as LLVM writes them.

    Object     ::= machine Section* Symbol* Relocation*          local names belong to the object
    Section    ::= (number, group, bytes or zeros, alignment)     only what is loaded
    group      ::= text (executable) | rodata | data (writable)
    Symbol     ::= (name, section | undefined | absolute, value, binding)
    Relocation ::= (section, offset, type, symbol number, addend)

Every count, offset and length is checked against the bytes at hand: a damaged object gives a
CompileError, never a crash. Unwind tables are not loaded: no exception passes through a kernel.
`runtime.link` places objects in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from monograph.errors import CompileError

__all__ = ["AARCH64", "ABSOLUTE", "UNDEFINED", "X86_64", "Group", "Object", "Relocations", "Section", "Symbol", "read"]

X86_64, AARCH64 = 62, 183
UNDEFINED, ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2

Group = Literal["text", "rodata", "data"]

_HEADER = np.dtype([
    ("ident", "V16"), ("type", "<u2"), ("machine", "<u2"), ("version", "<u4"), ("entry", "<u8"), ("phoff", "<u8"),
    ("shoff", "<u8"), ("flags", "<u4"), ("ehsize", "<u2"), ("phentsize", "<u2"), ("phnum", "<u2"),
    ("shentsize", "<u2"), ("shnum", "<u2"), ("shstrndx", "<u2"),
])
_SECTION = np.dtype([
    ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"), ("size", "<u8"),
    ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entsize", "<u8"),
])
_SYMBOL = np.dtype([
    ("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8"),
])
_RELA = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])

_PROGBITS, _SYMTAB, _RELA_TYPE, _NOBITS, _REL_TYPE, _UNWIND = 1, 2, 4, 8, 9, 0x70000001
_STARTUP_TYPES = (14, 15, 16)          # init, fini and preinit arrays: code to run at load, which nothing here does
_WRITE, _ALLOC, _EXECUTE, _TLS = 1, 2, 4, 0x400
_MAX_SECTION = 1 << 31
_SKIPPED = (b".eh_frame", b".note")


@dataclass(slots=True)
class Section:
    number: int
    group: Group
    content: bytes | memoryview | None     # None: zeros
    size: int
    align: int


@dataclass(slots=True)
class Symbol:
    name: str
    section: int            # section number, UNDEFINED or ABSOLUTE
    value: int
    is_local: bool
    is_weak: bool


@dataclass(slots=True)
class Relocations:
    """Relocations of one section, one array entry each."""

    section: int
    offset: np.ndarray
    type: np.ndarray
    symbol: np.ndarray
    addend: np.ndarray


@dataclass(slots=True)
class Object:
    machine: int
    sections: list[Section]
    symbols: list[Symbol]
    relocations: list[Relocations]


def read(data: bytes) -> Object:
    """Parse one object file; CompileError when it is damaged or asks for what the loader does not do."""
    header = _array(data, _HEADER, 0, 1, "header")[0]
    ident = header["ident"].tobytes()
    if ident[:6] != b"\x7fELF\x02\x01" or header["type"] != 1:
        raise CompileError("not a little-endian ELF64 relocatable object")
    if header["shentsize"] != _SECTION.itemsize:
        raise CompileError(f"ELF section headers of {header['shentsize']} bytes; {_SECTION.itemsize} expected")
    rows = _array(data, _SECTION, int(header["shoff"]), int(header["shnum"]), "section headers")
    names = _names(data, rows, int(header["shstrndx"]))
    headers = rows.tolist()
    sections = _sections(data, headers, names)
    loaded = {section.number: section for section in sections}
    symbols = _symbols(data, rows, headers)
    return Object(int(header["machine"]), sections, symbols, _relocations(data, headers, loaded, len(symbols)))


def _sections(data: bytes, headers: list[tuple[int, ...]], names: list[bytes]) -> list[Section]:
    sections: list[Section] = []
    view = memoryview(data)
    for number, (_, kind, flags, _, offset, size, _, _, align, _) in enumerate(headers):
        if not flags & _ALLOC or kind == _UNWIND or names[number].startswith(_SKIPPED):
            continue
        if flags & _TLS or kind in _STARTUP_TYPES:
            raise CompileError(f"ELF section {names[number].decode(errors='replace')} is not supported by the loader")
        if kind not in (_PROGBITS, _NOBITS):
            continue
        align = align or 1
        if size > _MAX_SECTION or align > 1 << 16 or align & (align - 1):
            raise CompileError(f"ELF section {number}: size {size}, alignment {align}")
        content = None
        if kind == _PROGBITS:
            _bounded(data, offset, size, "section")
            content = view[offset:offset + size]
        group: Group = "text" if flags & _EXECUTE else "data" if flags & _WRITE else "rodata"
        if flags & _EXECUTE and flags & _WRITE:
            raise CompileError(f"ELF section {number} is both writable and executable")
        sections.append(Section(number, group, content, size, align))
    return sections


def _symbols(data: bytes, rows: np.ndarray, headers: list[tuple[int, ...]]) -> list[Symbol]:
    tables = [number for number, header in enumerate(headers) if header[1] == _SYMTAB]
    if len(tables) != 1:
        raise CompileError(f"ELF object with {len(tables)} symbol tables; 1 expected")
    header = headers[tables[0]]
    table = _array(data, _SYMBOL, header[4], header[5] // _SYMBOL.itemsize, "symbol table")
    strings = _strings(data, headers, header[6])
    symbols = []
    for name, info, _, section, value, _ in table.tolist():
        if section == _COMMON or (section >= len(headers) and section != ABSOLUTE):
            raise CompileError(f"ELF symbol in section {section}, which the loader does not know")
        if value >= _MAX_SECTION and (section != ABSOLUTE or value >= 1 << 63):
            raise CompileError(f"ELF symbol with the value {value:#x}")
        binding = info >> 4
        symbols.append(Symbol(_name(strings, name), section, value, binding == 0, binding == 2))
    return symbols


def _relocations(
    data: bytes, headers: list[tuple[int, ...]], loaded: dict[int, Section], symbols: int
) -> list[Relocations]:
    found = []
    for header in headers:
        kind, target = header[1], header[7]
        if kind not in (_RELA_TYPE, _REL_TYPE) or target not in loaded:
            continue
        if kind == _REL_TYPE:
            raise CompileError("ELF relocations without addends are not supported by the loader")
        table = _array(data, _RELA, header[4], header[5] // _RELA.itemsize, "relocations")
        if len(table) and int(table["symbol"].max()) >= symbols:
            raise CompileError("ELF relocation against a symbol that does not exist")
        if len(table) and int(table["offset"].max()) + 4 > loaded[target].size:
            raise CompileError("ELF relocation outside its section")
        found.append(Relocations(
            target, table["offset"].astype(np.int64), table["type"].astype(np.int64),
            table["symbol"].astype(np.int64), table["addend"].astype(np.int64),
        ))
    return found


def _bounded(data: bytes, offset: int, size: int, what: str) -> None:
    if offset + size > len(data):
        raise CompileError(f"ELF {what} reaches past the end of the object ({offset} + {size} > {len(data)})")


def _array(data: bytes, dtype: np.dtype, offset: int, count: int, what: str) -> np.ndarray:
    _bounded(data, offset, dtype.itemsize * count, what)
    return np.frombuffer(data, dtype, count, offset)


def _strings(data: bytes, headers: list[tuple[int, ...]], number: int) -> bytes:
    if number >= len(headers):
        raise CompileError(f"ELF string table {number} does not exist")
    offset, size = headers[number][4], headers[number][5]
    _bounded(data, offset, size, "string table")
    return data[offset:offset + size]


def _names(data: bytes, rows: np.ndarray, number: int) -> list[bytes]:
    strings = _strings(data, rows.tolist(), number)
    return [_name(strings, name).encode() for name in rows["name"].tolist()]


def _name(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if offset > len(strings) or end < 0:
        raise CompileError("ELF name outside its string table")
    return strings[offset:end].decode(errors="replace")
