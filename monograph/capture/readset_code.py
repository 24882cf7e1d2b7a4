"""What Python code may read, found without running it.

    Names ::= globals: name*  chains: (name, attribute+)*  stored: name*  fresh: name*  bare: name*
              by_text: name*  spelled: name*

`bare` are the globals that are read as a whole somewhere, neither to take an attribute of nor to be called. `fresh` are
those that the code always stores before it reads them: what they were does not matter. `spelled` are all names of
attributes, and texts that may be some.

`torch.nn.functional.relu` is the chain (torch, (nn, functional, relu)). Names of nested functions are
included: they run, when they run, on the same globals.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from monograph.capture.blame import ALGEBRA

__all__ = [
    "Names", "find_attribute", "is_standard_file", "is_user_class", "is_of_user_file", "is_user_file", "names", "quote",
]

HEAP_TYPE = 1 << 9      # Py_TPFLAGS_HEAPTYPE: made by a class statement
# Bytecode: the low bit of some arguments is a flag, from the version on that is named.
LOAD, STORE, EXTENDED = dis.opmap["LOAD_GLOBAL"], dis.opmap["STORE_GLOBAL"], dis.EXTENDED_ARG
ATTRIBUTES = frozenset(dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap)
SILENT = frozenset(dis.opmap[name] for name in ("CACHE", "PRECALL", "NOP") if name in dis.opmap)
JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])
LOAD_SHIFT = int(sys.version_info >= (3, 11))
ATTRIBUTE_SHIFT = int(sys.version_info >= (3, 12))

OWN = str(Path(__file__).resolve().parents[1]) + os.sep
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
STANDARD = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
GENERATED = ("<monograph", "<frozen", "<eval_with_key", "<torch", "<__array_function__", "<attrs", "<lambdify")
FOREIGN_ROOTS = frozenset({"torch", "numpy", "sympy", "mpmath", "monograph", "builtins"}) | (
    sys.stdlib_module_names - {"types"})             # makes classes for others


@dataclass(frozen=True, slots=True)
class Names:
    globals: tuple[str, ...]
    chains: tuple[tuple[str, tuple[str, ...]], ...]
    stored: frozenset[str]
    fresh: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    by_text: frozenset[str] = frozenset()
    spelled: frozenset[str] = frozenset()


BY_TEXT = frozenset({"globals", "eval", "exec"})       # they see every global

_names: dict[int, tuple[types.CodeType, Names]] = {}     # by identity: code objects hash by their whole content


def names(code: types.CodeType) -> Names:
    """The globals that `code` and the functions defined in it load and store."""
    found = _names.get(id(code))
    if found is None:
        found = _names[id(code)] = (code, _scan(code))
    return found[1]


def _scan(code: types.CodeType) -> Names:
    loaded: dict[str, None] = {}
    chains: dict[tuple[str, tuple[str, ...]], None] = {}
    stored: set[str] = set()
    fresh: set[str] = set()
    bare: set[str] = set()
    straight = True                          # no jump so far
    root, attributes, called = "", [], False
    for operation, argument in _instructions(code.co_code):
        straight = straight and operation not in JUMPS
        if root and operation in ATTRIBUTES:
            attributes.append(code.co_names[argument >> ATTRIBUTE_SHIFT])
            continue
        if root and attributes:
            chains[root, tuple(attributes)] = None
        elif root and not called:
            bare.add(root)
        root, attributes = "", []
        if operation == LOAD:
            root, called = code.co_names[argument >> LOAD_SHIFT], bool(argument & LOAD_SHIFT)
            loaded[root] = None
        elif operation == STORE:
            name = code.co_names[argument]
            if straight and name not in loaded and name not in stored:
                fresh.add(name)
            stored.add(name)
    spelled = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, str) and constant.isidentifier():
            spelled.add(constant)
        elif isinstance(constant, tuple):
            spelled.update(entry for entry in constant if isinstance(entry, str))
        elif isinstance(constant, types.CodeType):
            inner = names(constant)
            loaded.update(dict.fromkeys(inner.globals))
            chains.update(dict.fromkeys(inner.chains))
            stored |= inner.stored
            bare |= inner.bare
            spelled |= inner.spelled
    return Names(tuple(loaded), tuple(chains), frozenset(stored), frozenset(fresh), frozenset(bare),
                 BY_TEXT & loaded.keys(), frozenset(spelled))


def _instructions(raw: bytes) -> Iterator[tuple[int, int]]:
    """(operation, argument) of what may touch a name; what merely stands between is left out."""
    extended = 0
    for operation, argument in zip(raw[::2], raw[1::2]):
        if operation == EXTENDED:
            extended = (extended | argument) << 8
            continue
        argument |= extended
        extended = 0
        if operation not in SILENT:
            yield operation, argument


@functools.cache
def is_user_file(file: str) -> bool:
    """False for torch and what it computes sizes with, the standard library, ourselves, and text that is in no file but
    generated by them or numpy."""
    if file.startswith("<"):                 # a program given to `exec`, `python -c` or a prompt is the user's
        return not file.startswith(GENERATED)
    if file.startswith((OWN, TORCH, *ALGEBRA)):
        return False
    return "site-packages" in file or "dist-packages" in file or not file.startswith(STANDARD)


_foreign: dict[int, types.CodeType] = {}       # by identity, as `_names`


def is_of_user_file(code: types.CodeType) -> bool:
    """`is_user_file` of its file, soon told."""
    if id(code) in _foreign:
        return False
    if is_user_file(code.co_filename):
        return True
    _foreign[id(code)] = code
    return False


@functools.cache
def is_standard_file(file: str) -> bool:
    """Python's own library, but for what is installed into its folder."""
    return file.startswith((*STANDARD, "<frozen")) and "site-packages" not in file


def is_user_class(cls: type) -> bool:
    """Made by a class statement outside of torch and the standard library."""
    root = getattr(cls, "__module__", None)
    return bool(cls.__flags__ & HEAP_TYPE) and isinstance(root, str) and root.partition(".")[0] not in FOREIGN_ROOTS


def find_attribute(cls: type, name: str) -> tuple[type, Any] | None:
    """The class of the MRO that defines `name`, and the raw object there; None when there is none."""
    for entry in cls.__mro__:
        if name in entry.__dict__:
            return entry, entry.__dict__[name]
    return None


@functools.lru_cache(maxsize=10_000)
def quote(name: str) -> str:
    """`name` as a string literal inside a Fact's expression, whose braces mean objects."""
    return repr(name).replace("{", "{{").replace("}", "}}")
