"""Loops that stand alone: a vector loop as a function of its own, called where it stands.

    void @kernel.tileN(buffers it touches, free variables, carried values from outside)

Register allocation works on whole functions and knows nothing of how often their parts run: beside an epilogue
full of constants a register tile that just fits would be spilled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monograph.codegen import vectorloop
from monograph.codegen.facts import operands, walk
from monograph.codegen.function import Function
from monograph.codegen.text import Value
from monograph.codegen.types import register
from monograph.loops.nodes import Buffer, Carry, Check, Expr, For, Load, Stmt, Store, Var

__all__ = ["can_stand_alone", "write"]


def can_stand_alone(loop: For) -> bool:
    """May `loop` be a function? It must hand nothing on and stop nothing."""
    return not loop.carried and not any(isinstance(s, Check) for s in _statements(loop))


def write(fn: Function, loop: For, block: Callable[[Function, Sequence[Stmt]], None]) -> None:
    """Call the function of `loop`, and define it at the first call."""
    buffers, variables, carries = _used(loop)
    stored = fn.facts.stored(loop)
    fn.forget(stored)
    passed = [fn.pointers[b] for b in buffers] + [fn.scalar(leaf) for leaf in (*variables, *carries)]
    # Numbered, not named after the variable: equal kernels are to have equal text.
    standing = [s for s in fn.facts.kernel.statements() if isinstance(s, For) and s.alone]
    name = f"{fn.facts.kernel.name}.tile{standing.index(loop)}"
    if name not in fn.text.module.helpers:
        fn.text.module.helpers[name] = ""       # its place among the helpers; filled when its body is known
        fn.text.module.helpers[name] = _define(fn, loop, name, buffers, variables, carries, block)
    fn.text.line(f"call void @{name}({', '.join(map(str, passed))})")
    fn.forget(stored)


def _define(
    fn: Function, loop: For, name: str, buffers: list[Buffer], variables: list[Var], carries: list[Carry],
    block: Callable[[Function, Sequence[Stmt]], None],
) -> str:
    pointers = {b: Value(f"%p{i}", "ptr") for i, b in enumerate(buffers)}
    inner = Function(fn.text.module, fn.facts, fn.target, dict(pointers))
    parameters = [f"ptr noalias {p.ref}" for p in pointers.values()]
    for i, variable in enumerate(variables):
        value = Value(f"%i{i}", "i64")
        inner.bind(variable, value)
        inner.homes[value.ref] = 0
        parameters.append(str(value))
    for i, carried in enumerate(carries):
        value = Value(f"%c{i}", register(carried.dtype))
        inner.bind_carry(carried, value)
        parameters.append(str(value))
    vectorloop.write(inner, loop, block)
    inner.text.line("ret void")
    return f"define internal void @{name}({', '.join(parameters)}) noinline nounwind {{\n{inner.text.body()}\n}}\n"


def _used(loop: For) -> tuple[list[Buffer], list[Var], list[Carry]]:
    """The buffers, variables and carried values that `loop` takes from outside, in order of appearance."""
    buffers: dict[Buffer, None] = {}
    leaves: dict[Expr, None] = {}
    inside: set[For] = set()
    own: set[Expr] = set()
    seen: set[Expr] = set()
    for statement in _statements(loop):
        if isinstance(statement, For):
            inside.add(statement)
            own.add(statement.var)
        if isinstance(statement, Store):
            buffers[statement.buffer] = None
        for expr in walk(operands(statement), seen):
            seen.add(expr)
            if isinstance(expr, Load):
                buffers[expr.buffer] = None
            elif isinstance(expr, (Var, Carry)):
                leaves[expr] = None
    variables = [v for v in leaves if isinstance(v, Var) and v not in own]
    return list(buffers), variables, [c for c in leaves if isinstance(c, Carry) and c.loop not in inside]


def _statements(loop: For) -> list[Stmt]:
    found: list[Stmt] = [loop]
    for statement in loop.body:
        found += _statements(statement) if isinstance(statement, For) else [statement]
    return found
