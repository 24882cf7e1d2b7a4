import dataclasses
import hashlib
import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monograph.errors import CompileError
from monograph.ir.symbolic import Symbol
from monograph.ir.types import ScalarType, TensorType
from monograph.runtime import serialise
from monograph.runtime.execute import Executable
from monograph.runtime.program import (
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
)
from monograph.runtime.serialise import dumps, loads
from tests.runtime.programs import sum_program, tensor_type, weight_program


def rich_program():
    """One of everything a program may hold."""
    kind = tensor_type(4)
    attributes = {
        "none": None, "flag": True, "count": -3, "rate": -0.0, "nan": math.nan, "inf": math.inf, "z": 1 - 2j,
        "sizes": (1, (2, 3.5)), "dtype": torch.bfloat16, "device": torch.device("cpu"), "layout": torch.strided,
        "format": torch.channels_last, "text": "a \"quoted\" \N{GREEK SMALL LETTER ALPHA}", "list": [1, None],
    }
    return Program(
        slots=[
            Slot("input", 0, kind), Slot("arena", 64, kind), Slot("output", 0, kind), Slot("derived", 0, kind),
            Slot("literal", 0, tensor_type(2, 3, strides=(1, 2))),
        ],
        inputs=[kind], outputs=[kind], arena_bytes=128,
        steps=[
            Native("k", (0, 1), True, "add mul", (0,)),
            Library("aten.cat.default", ((SlotRef(0), SlotRef(1)), None, 2.5), attributes, (2, None), "cat"),
        ],
        objects=[b"\x7fELF one", b"", b"two"],
        literals=[
            torch.randn(3, 2).t(), torch.tensor([True, False]), torch.empty(0, 3, dtype=torch.int64),
            torch.tensor(2.5, dtype=torch.bfloat16),
        ],
        derived=[
            Derived((0,), {"steps": [["reshape", [2, 2]], ["permute", [1, 0]], ["reshape", [4]]]}, lambda w: w, kind),
            Derived((("derived", 0), 0), {"steps": [["concat", [0]], ["slice", [0, 0, 4]]]}, lambda a, b: a, kind),
        ],
        errors=[Error("IndexError", "index {0}", "m.py", 3)],
    )


def test_a_program_survives():
    program = rich_program()
    again = loads(dumps(program))
    for name in (field.name for field in dataclasses.fields(Program)):
        if name not in ("literals", "derived", "steps"):
            assert getattr(again, name) == getattr(program, name), name
    assert again.steps[0] == program.steps[0]
    before, after = program.steps[1], again.steps[1]
    assert repr(before) == repr(after)      # NaN differs from itself, and -0.0 must stay
    for mine, theirs in zip(program.literals, again.literals, strict=True):
        assert torch.equal(mine, theirs) and mine.dtype == theirs.dtype and mine.stride() == theirs.stride()
    assert [(d.sources, d.recipe, d.type) for d in again.derived] == [
        (d.sources, d.recipe, d.type) for d in program.derived
    ]
    x = torch.arange(4.0)
    assert torch.equal(again.derived[0].compute(x), x.reshape(2, 2).t().reshape(4))
    assert dumps(again) == dumps(program)


def test_a_read_program_runs():
    a, b = torch.randn(3, 5), torch.randn(3, 5)
    assert torch.equal(Executable(loads(dumps(sum_program(3, 5)))).run([a, b])[0], a + b + b)
    program = weight_program(4)
    program.derived[0].recipe = {"graph": "twice"}
    again = loads(dumps(program), {"twice": lambda w: 2 * w}.get)
    x, w = torch.randn(4), torch.randn(4)
    assert torch.equal(Executable(again).run([x, w])[0], x + 2 * w)
    with pytest.raises(CompileError, match="evaluate"):
        loads(dumps(program))


def test_host_objects_are_refused():
    program = rich_program()
    program.steps[1].attributes["host"] = print
    with pytest.raises(CompileError, match="cannot be written"):
        dumps(program)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_is_noticed(data):
    good = dumps(rich_program())
    at = data.draw(st.integers(0, len(good) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda byte: byte != good[at]))
    cut = data.draw(st.booleans())
    bad = good[:at] if cut else good[:at] + bytes([value]) + good[at + 1:]
    with pytest.raises(CompileError):
        loads(bad)


def rewritten(edit):
    """A program whose header was edited by somebody who knows how to make the checksum right."""
    data = dumps(rich_program())
    _, _, length, _ = serialise._PREFIX.unpack_from(data)
    start = serialise._PREFIX.size
    header = json.loads(data[start:start + length])
    edit(header)
    text = json.dumps(header).encode()
    body = text + data[start + length:]
    return serialise._PREFIX.pack(serialise.MAGIC, serialise.FORMAT, len(text), hashlib.sha256(body).digest()) + body


def put(*path):
    *way, last, value = path

    def edit(header):
        place = header
        for key in way:
            place = place[key]
        place[last] = value

    return edit


EDITS = [
    put("slots", 0, 1, 1), put("slots", 0, 1, -1), put("slots", 1, 1, 120), put("slots", 1, 1, 2),
    put("slots", 0, 0, "heap"), put("slots", 0, 0, []), put("slots", 2, 2, 1, [1 << 40]), put("slots", 2, 2, 2, [-1]),
    put("slots", 2, 2, 1, ["x"]),
    put("slots", 2, 2, 0, "f33"), put("slots", 2, 2, 3, "cuda"), put("slots", 4, 1, 4),
    put("steps", 0, "slots", [0, 5]), put("steps", 0, "slots", [0.5]),
    put("steps", 0, "errors", [1]), put("steps", 1, "results", [9]),
    put("steps", 1, "operands", [{"slot": 77}]), put("steps", 1, "operands", [{"pickle": "x"}]),
    put("steps", 1, "operands", [{}]), put("steps", 1, "attributes", "dtype", {"dtype": "f33"}), put("arena_bytes", -1),
    put("arena_bytes", 1 << 60), put("blobs", 0, 1 << 40), put("blobs", 0, -9), put("blobs", []),
    put("derived", 0, 0, [4]), put("derived", 0, 0, [["derived", 0]]), put("derived", 1, 0, [["x", 0]]),
    put("derived", 0, 1, {"steps": [["exec", []]]}), put("derived", 0, 1, {}), put("literals", 0, 1, [9, 9]),
    put("inputs", 0, 2, [1, 1]), put("errors", 0, 3, "line"), put("slots", None),
]


@pytest.mark.parametrize("edit", EDITS)
def test_what_is_read_is_validated(edit):
    with pytest.raises(CompileError):
        loads(rewritten(edit))


def test_other_files_and_versions_are_named():
    data = dumps(rich_program())
    with pytest.raises(CompileError, match="not a compiled program"):
        loads(b"PK\x03\x04" + data)
    with pytest.raises(CompileError, match="format 9"):
        loads(data[:8] + b"\x09" + data[9:])
    with pytest.raises(CompileError):
        loads(b"")


def controlled() -> Program:
    """One of each step that stands between kernels."""
    size = Symbol("s", 1, 9)
    kinds = [
        Slot("held", 0, TensorType(torch.float32, (size, 4))), Slot("held", 1, ScalarType("int", "n")),
        Slot("arena", 0, TensorType(torch.int64, (), strides=())),
        Slot("rows", 2, TensorType(torch.float32, (1, 4), strides=(4, 1))),
        Slot("word", 7, TensorType(torch.int64, (1,), strides=(1,))),
    ]
    steps = [
        Jump(1), Branch(2, 3), Move(((2, 1),), (0,), drops=(1,)), Record("round", (2,), (1, 0), 4, (6,)),
        RowsStart(2 * size + 1, ((0, 3),), ((0, 5),), ((31, 0, 2), (1, 7, 1)), (3,)), RowsNext(0, ((3, 16),), 4),
        Point(0, 2, 4, (6,)), RowAt(0, 2, 4, 2, 6, 16, "model.py", 3),
        Library("aten.neg.default", (SlotRef(0),), {"n": size // 2}, (None,), "neg", (0,), True, "model.py", 4),
    ]
    return Program(
        slots=kinds, inputs=[kinds[0].type], outputs=[kinds[1].type], steps=steps, arena_bytes=64, row_words=10, held=2,
        held_inputs=[(0, 0)], held_outputs=[(0, 1)],
    )


def test_control_flow_and_symbolic_sizes_come_back_as_they_were():
    program = controlled()
    assert loads(dumps(program)) == program


@pytest.mark.parametrize("number, change", [
    (0, {"target": 99}), (0, {"target": -1}), (1, {"slot": 9}), (1, {"slot": 3}), (2, {"pairs": ((2, 2),)}),
    (2, {"drops": (7,)}), (3, {"words": (10,)}), (3, {"words": ()}), (3, {"action": "stop"}), (4, {"given": ((2, 2),)}),
    (4, {"chunks": ((0, 0, 0),)}), (4, {"chunks": ((8, 0, 9),)}), (4, {"chunks": ((8, 8, 1),)}), (4, {"roomy": (10,)}),
    (5, {"counter": 8}), (5, {"pointers": ((10, 16),)}), (6, {"users": (-1,)}),
    (7, {"index": 3}), (7, {"slot": 2}), (8, {"drops": (2,)}),
])
def test_control_flow_that_makes_no_sense_is_refused(number, change):
    program = controlled()
    program.steps[number] = dataclasses.replace(program.steps[number], **change)
    with pytest.raises(CompileError, match="malformed"):
        loads(dumps(program))
