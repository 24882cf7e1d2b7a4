"""Programs as bytes: no pickle, nothing that runs on reading.

    File   ::= magic  version(u32)  header length(u32)  sha256 of what follows  header  blob*
    Header ::= JSON: slots, inputs, outputs, steps, derived, errors, arena bytes, blob lengths
    blobs      object files, then the bytes of the literals

Numbers inside operands and attributes are tagged, so that -0.0, NaN and infinities, tuples, dtypes and slots come back
as they were. Everything read is validated: sizes, counts and offsets, before any is used.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch

from monograph.errors import CompileError, VerificationError
from monograph.ir import dtypes
from monograph.ir.symbolic import Expr
from monograph.ir.types import ScalarType, TensorType, Type
from monograph.runtime import dims, recipe
from monograph.runtime.program import (
    AnySize,
    Branch,
    Derived,
    Error,
    Jump,
    Library,
    Move,
    Native,
    Point,
    Program,
    Record,
    RowAt,
    RowsNext,
    RowsStart,
    Slot,
    SlotRef,
    Step,
)
from monograph.runtime.validate import span, static, validate

__all__ = ["FORMAT", "dumps", "loads"]

MAGIC = b"MONOGRPH"
FORMAT = 4
_PREFIX = struct.Struct("<8sII32s")
_MEMORY_FORMATS = {
    str(value).removeprefix("torch."): value
    for value in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format)
}
_LAYOUTS = {"strided": torch.strided}


def dumps(program: Program) -> bytes:
    """The program as bytes; CompileError where an attribute has no textual form (a host callable)."""
    literals = [_literal_bytes(literal) for literal in program.literals]
    header = {
        "slots": [[slot.kind, slot.position, _type(slot.type)] for slot in program.slots],
        "inputs": [_type(kind) for kind in program.inputs],
        "outputs": [_type(kind) for kind in program.outputs],
        "steps": [_step(step) for step in program.steps],
        "derived": [[list(item.sources), item.recipe, _type(item.type)] for item in program.derived],
        "errors": [[error.exception, error.message, error.file, error.line] for error in program.errors],
        "literals": [_type(_literal_type(literal)) for literal in program.literals],
        "arena_bytes": program.arena_bytes,
        "held": [program.held, program.held_inputs, program.held_outputs],
        "row_words": program.row_words, "cells": program.cells,
        "blobs": [len(blob) for blob in (*program.objects, *literals)],
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    body = b"".join((text, *program.objects, *literals))
    return _PREFIX.pack(MAGIC, FORMAT, len(text), hashlib.sha256(body).digest()) + body


def loads(data: bytes, evaluate: recipe.Evaluate | None = None) -> Program:
    """The program in `data`; CompileError where it is damaged or of another format.

    `evaluate` gives meaning to derived weights that are computed by a graph.
    """
    if len(data) < _PREFIX.size:
        raise CompileError("not a compiled program: too short")
    magic, version, length, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise CompileError("not a compiled program")
    if version != FORMAT:
        raise CompileError(f"a compiled program of format {version}; this version reads format {FORMAT}")
    body = memoryview(data)[_PREFIX.size:]
    if length > len(body) or hashlib.sha256(body).digest() != digest:
        raise CompileError("a damaged compiled program: its checksum does not match")
    try:
        program = _program(json.loads(bytes(body[:length])), body[length:], evaluate)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, VerificationError) as error:
        raise CompileError(f"a malformed compiled program: {error!r}") from error
    validate(program)
    return program


def _program(header: dict[str, Any], blobs: memoryview, evaluate: recipe.Evaluate | None) -> Program:
    literal_types = [_read_tensor_type(entry) for entry in header["literals"]]
    lengths = [_integer(length) for length in header["blobs"]]
    if min(lengths, default=0) < 0 or sum(lengths) != len(blobs) or len(lengths) < len(literal_types):
        raise ValueError("blob lengths do not add up")
    parts = []
    at = 0
    for length in lengths:
        parts.append(blobs[at:at + length])
        at += length
    objects = len(parts) - len(literal_types)
    held, held_inputs, held_outputs = header["held"]
    return Program(
        slots=[_read_slot(entry) for entry in header["slots"]],
        inputs=[_read_type(entry) for entry in header["inputs"]],
        outputs=[_read_type(entry) for entry in header["outputs"]],
        steps=[_read_step(entry) for entry in header["steps"]],
        objects=[bytes(part) for part in parts[:objects]],
        literals=[_read_literal(kind, part) for kind, part in zip(literal_types, parts[objects:])],
        derived=[_read_derived(entry, evaluate) for entry in header["derived"]],
        errors=[
            Error(_string(exception), _string(message), _string(file), _integer(line))
            for exception, message, file, line in header["errors"]
        ],
        arena_bytes=_integer(header["arena_bytes"]),
        row_words=_integer(header["row_words"]), held=_integer(held),
        held_inputs=list(_pairs(held_inputs)), held_outputs=list(_pairs(held_outputs)),
        cells=[(_string(name), _integer(word), _integer(held)) for name, word, held in header["cells"]],
    )


def _read_slot(entry: Any) -> Slot:
    kind, position, of = entry
    return Slot(cast(Any, _string(kind)), _integer(position), _read_type(of))      # `validate` checks the kind


# -- types

def _type(kind: Type) -> list[Any]:
    if isinstance(kind, ScalarType):
        return [kind.kind, kind.symbol]
    strides = None if kind.strides is None else list(map(dims.write, kind.strides))
    return [dtypes.name(kind.dtype), list(map(dims.write, kind.shape)), strides, kind.device]


def _read_type(entry: Any) -> Type:
    if len(entry) == 2:
        kind, symbol = entry
        if kind not in ("int", "float", "bool"):
            raise ValueError(f"{kind!r} is no kind of number")
        return ScalarType(kind, None if symbol is None else _string(symbol))
    name, shape, strides, device = entry
    return TensorType(
        dtypes.BY_NAME[name], tuple(map(dims.read, shape)), _string(device),
        None if strides is None else tuple(map(dims.read, strides)),
    )


def _read_tensor_type(entry: Any) -> TensorType:
    kind = _read_type(entry)
    if not isinstance(kind, TensorType):
        raise ValueError(f"{kind} is no tensor")
    return kind


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not an integer")
    return value


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(map(_integer, values))


def _pairs(values: Any) -> Iterator[tuple[int, int]]:
    for first, second in values:
        yield _integer(first), _integer(second)


def _string(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r} is not a string")
    return value


# -- steps

ANY_SIZE = ("blocks", "rooms", "margins", "sizes")      # fields with expressions


def _step(step: Step) -> dict[str, Any]:
    if isinstance(step, Native):
        return _native(step)
    if isinstance(step, Library):
        return _library(step)
    if isinstance(step, Move):
        return {"pairs": step.pairs, "binds": step.binds, "label": step.label, "drops": step.drops}
    if isinstance(step, Record):
        return {"action": step.action, "carried": step.carried, "results": step.results, "label": step.label,
                "at": step.counter, "words": step.words}
    if isinstance(step, RowsStart):
        return {"size": dims.write(step.size), "given": step.given, "results": step.results, "chunks": step.chunks,
                "roomy": step.roomy, "label": step.label}
    if isinstance(step, AnySize):
        return {"given": step.given, "results": step.results, "label": step.label,
                "kernel": [step.symbol, step.slots], "limits": step.limits,
                **{name: _value(getattr(step, name)) for name in ANY_SIZE}}
    if isinstance(step, RowsNext):
        return {"counter": step.counter, "pointers": step.pointers, "target": step.target,
                "label": step.label}
    if isinstance(step, Point):
        return {"stack": [step.slot, step.word, step.counter], "users": step.users, "label": step.label}
    if isinstance(step, RowAt):
        return {"row": [step.slot, step.stack, step.counter, step.index, step.word, step.row_bytes],
                "at": [step.file, step.line], "label": step.label}
    slot = {"slot": step.slot} if isinstance(step, Branch) else {}
    return {**slot, "target": step.target, "label": step.label}


def _native(step: Native) -> dict[str, Any]:
    return {
        "symbol": step.symbol, "slots": list(step.slots), "can_fail": step.can_fail, "label": step.label,
        "errors": list(step.errors),
    }


def _library(step: Library) -> dict[str, Any]:
    return {
        "op": step.op, "operands": [_value(operand) for operand in step.operands],
        "attributes": {name: _value(value) for name, value in step.attributes.items()},
        "results": list(step.results), "label": step.label, "drops": step.drops,
        "raises": step.raises, "at": [step.file, step.line], "kernel": [step.symbol, step.slots],
    }


def _read_step(entry: dict[str, Any]) -> Step:
    if "slot" in entry:
        return Branch(_integer(entry["slot"]), _integer(entry["target"]), _string(entry["label"]))
    if "counter" in entry:
        return RowsNext(_integer(entry["counter"]), tuple(_pairs(entry["pointers"])), _integer(entry["target"]),
                        _string(entry["label"]))
    if "chunks" in entry:
        given, results = (tuple(_pairs(entry[name])) for name in ("given", "results"))
        chunks = tuple((most, counter, fewest) for most, counter, fewest in map(_integers, entry["chunks"]))
        roomy = _integers(entry["roomy"])
        return RowsStart(dims.read(entry["size"]), given, results, chunks, roomy, _string(entry["label"]))
    if "margins" in entry:
        given, results = (tuple(_pairs(entry[name])) for name in ("given", "results"))
        fields = {name: _read_value(entry[name]) for name in ANY_SIZE}
        limits = tuple((_string(name), _integer(word)) for name, word in entry["limits"])
        symbol, slots = entry["kernel"]
        return AnySize(given, results, **fields, label=_string(entry["label"]), symbol=_string(symbol),
                       slots=_integers(slots), limits=limits)
    if "users" in entry:
        slot, word, counter = _integers(entry["stack"])
        return Point(slot, word, counter, _integers(entry["users"]), _string(entry["label"]))
    if "row" in entry:
        slot, stack, counter, index, word, size = _integers(entry["row"])
        file, line = entry["at"]
        return RowAt(slot, stack, counter, index, word, size, _string(file), _integer(line), _string(entry["label"]))
    if "target" in entry:
        return Jump(_integer(entry["target"]), _string(entry["label"]))
    if "pairs" in entry:
        pairs = tuple(_pairs(entry["pairs"]))
        return Move(pairs, _integers(entry["binds"]), _string(entry["label"]), _integers(entry["drops"]))
    if "action" in entry:
        action = cast(Any, _string(entry["action"]))        # `validate` checks it
        return Record(action, _integers(entry["carried"]), _integers(entry["results"]), _integer(entry["at"]),
                      _integers(entry["words"]), _string(entry["label"]))
    if "symbol" in entry:
        return Native(
            _string(entry["symbol"]), tuple(map(_integer, entry["slots"])), bool(entry["can_fail"]),
            _string(entry["label"]), tuple(map(_integer, entry["errors"])),
        )
    file, line = entry["at"]
    symbol, slots = entry["kernel"]
    return Library(
        _string(entry["op"]), tuple(_read_value(operand) for operand in entry["operands"]),
        {_string(name): _read_value(value) for name, value in entry["attributes"].items()},
        tuple(None if result is None else _integer(result) for result in entry["results"]), _string(entry["label"]),
        _integers(entry["drops"]), bool(entry["raises"]), _string(file),
        _integer(line), _string(symbol), _integers(slots),
    )


# -- values: JSON scalars as they are, the rest as {tag: data}

def _value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    for tag, (kind, write, _) in _TAGS.items():
        if isinstance(value, kind):
            return {tag: write(value)}
    raise CompileError(f"a program with {value!r} among its attributes cannot be written to a file")


def _read_value(entry: Any) -> Any:
    if not isinstance(entry, dict):
        if entry is None or type(entry) in (bool, int, str):
            return entry
        raise ValueError(f"{entry!r} is not a value")
    (tag, data), = entry.items()
    return _TAGS[tag][2](data)


def _write_sequence(values: Sequence[Any]) -> list[Any]:
    return [_value(value) for value in values]


def _short(value: Any) -> str:
    return str(value).removeprefix("torch.")


_TAGS: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": (float, float.hex, float.fromhex),
    "complex": (complex, lambda z: [z.real.hex(), z.imag.hex()], lambda p: complex(*map(float.fromhex, p))),
    "tuple": (tuple, _write_sequence, lambda entries: tuple(_read_value(entry) for entry in entries)),
    "list": (list, _write_sequence, lambda entries: [_read_value(entry) for entry in entries]),
    "dim": (Expr, dims.write, dims.read),
    "slot": (SlotRef, lambda ref: ref.slot, lambda number: SlotRef(_integer(number))),
    "dtype": (torch.dtype, dtypes.name, lambda name: dtypes.BY_NAME[name]),
    "device": (torch.device, str, torch.device),
    "layout": (torch.layout, _short, lambda name: _LAYOUTS[name]),
    "memory_format": (torch.memory_format, _short, lambda name: _MEMORY_FORMATS[name]),
}


# -- literals and derived weights

def _literal_type(literal: torch.Tensor) -> TensorType:
    return TensorType(literal.dtype, tuple(literal.shape), strides=literal.stride())


def _literal_bytes(literal: torch.Tensor) -> bytes:
    """The memory a literal spans, gaps between its elements included."""
    size = span(_literal_type(literal))
    flat = literal.detach().resolve_conj().resolve_neg().as_strided((size // literal.element_size(),), (1,))
    return flat.view(torch.uint8).numpy().tobytes() if size else b""


def _read_literal(kind: TensorType, blob: memoryview) -> torch.Tensor:
    if span(kind) != len(blob):
        raise ValueError(f"literal {kind} in {len(blob)} bytes")
    if not len(blob):
        return torch.empty_strided(static(kind.shape), static(kind.strides), dtype=kind.dtype)
    flat = torch.frombuffer(bytearray(blob), dtype=torch.uint8).clone()      # clone: aligned memory of its own
    return flat.view(kind.dtype).as_strided(static(kind.shape), static(kind.strides))


def _read_derived(entry: Any, evaluate: recipe.Evaluate | None) -> Derived:
    sources, steps, kind = entry
    if not isinstance(steps, dict):
        raise ValueError("recipe")
    return Derived(
        tuple(tuple(source) if isinstance(source, list) else source for source in sources), steps,
        recipe.computation(steps, evaluate), _read_tensor_type(kind),
    )
