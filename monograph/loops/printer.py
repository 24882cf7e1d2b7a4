"""Kernels as text, for people: dumps, tests and error messages.

    kernel softmax(%x: f32[6144], %y: f32[6144]) scratch(%s: f32[768])
      parallel i in 0..8
        vector x4 c in 0..768 carry (m: f32 max = -inf)
          yield %x[i * 768 + c]

An expression used more than once in a scope, or very deep, gets a name where it is first needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from monograph.ir import dtypes
from monograph.loops.interpret import postorder
from monograph.loops.nodes import Buffer, Carry, Check, Const, Expr, For, Kernel, Load, Op, Stmt, Store, Var

__all__ = ["expression", "text"]

DEEP = 24           # levels of an expression on one line

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}


def text(kernel: Kernel) -> str:
    """The whole kernel, one statement a line."""
    printer = _Printer()
    scratch = f" scratch({_buffers(kernel.scratch)})" if kernel.scratch else ""
    lines = [f"kernel {kernel.name}({_buffers(kernel.arguments)}){scratch}"]
    return "\n".join(lines + printer.block(kernel.body, 1)) + "\n"


def expression(expr: Expr) -> str:
    """One expression on one line."""
    return _Printer().inline(expr)


def _buffers(buffers: Iterable[Buffer]) -> str:
    return ", ".join(f"{buffer!r}: {dtypes.name(buffer.dtype)}[{buffer.size}]" for buffer in buffers)


def _roots(statement: Stmt) -> list[Expr]:
    if isinstance(statement, For):
        return [statement.lo, statement.hi, *(entry.init for entry in statement.carried)]
    if isinstance(statement, Store):
        return [statement.index, statement.value] + ([statement.mask] if statement.mask is not None else [])
    return [statement.condition, *statement.values]


class _Printer:
    def __init__(self) -> None:
        self.names: dict[Expr, str] = {}
        self.count = 0

    def block(self, body: Sequence[Stmt], depth: int, yields: Sequence[Expr] = ()) -> list[str]:
        """The lines of a loop's body; names given inside are forgotten after it."""
        outer = dict(self.names)
        roots = [root for statement in body for root in _roots(statement)] + list(yields)
        uses = Counter(arg for expr in postorder(roots) for arg in expr.args)
        pad = "  " * depth
        lines: list[str] = []
        for statement in body:
            lines += [pad + line for line in self.lets(_roots(statement), uses)]
            lines.append(pad + self.head(statement))
            if isinstance(statement, For):
                lines += self.block(statement.body, depth + 1, statement.yields)
        if yields:
            lines += [pad + line for line in self.lets(yields, uses)]
            lines.append(pad + "yield " + ", ".join(map(self.inline, yields)))
        self.names = outer
        return lines

    def lets(self, roots: Iterable[Expr], uses: Counter[Expr]) -> list[str]:
        lines = []
        depth: dict[Expr, int] = {}
        for expr in postorder(roots):
            depth[expr] = 1 + max((depth[arg] for arg in expr.args if arg not in self.names), default=0)
            shared = uses[expr] > 1 and isinstance(expr, (Op, Load))
            if (shared or depth[expr] > DEEP) and expr not in self.names:
                value = self.inline(expr)
                self.names[expr] = f"t{self.count}"
                self.count += 1
                lines.append(f"{self.names[expr]} = {value}")
        return lines

    def head(self, statement: Stmt) -> str:
        if isinstance(statement, Store):
            where = f" where {self.inline(statement.mask)}" if statement.mask is not None else ""
            return f"{statement.buffer!r}[{self.inline(statement.index)}] = {self.inline(statement.value)}{where}"
        if isinstance(statement, Check):
            values = ", ".join(map(self.inline, statement.values))
            return f"check {self.inline(statement.condition)} else #{statement.code}({values}) {statement.exception}"
        kind = statement.kind + (f" x{statement.unroll}" if statement.unroll > 1 else "")
        step = f" step {statement.step}" if statement.step != 1 else ""
        carried = ", ".join(
            f"{entry.name}: {dtypes.name(entry.dtype)}{' ' + entry.combine.value if entry.combine else ''}"
            f" = {self.inline(entry.init)}"
            for entry in statement.carried
        )
        carry = f" carry ({carried})" if carried else ""
        return f"{kind} {statement.var.name} in {self.inline(statement.lo)}..{self.inline(statement.hi)}{step}{carry}"

    def inline(self, expr: Expr, nested: bool = False) -> str:
        if expr in self.names:
            return self.names[expr]
        if isinstance(expr, Const):
            return str(expr.value).lower() if isinstance(expr.value, bool) else str(expr.value)
        if isinstance(expr, Var):
            return expr.name
        if isinstance(expr, Carry):
            return expr.loop.carried[expr.position].name
        args = [self.inline(arg, True) for arg in expr.args]
        if isinstance(expr, Load):
            where = f", where {args[1]} else {args[2]}" if len(args) > 1 else ""
            return f"{expr.buffer!r}[{self.inline(expr.index)}{where}]"
        assert isinstance(expr, Op), expr
        if expr.name in INFIX:
            infix = f"{args[0]} {INFIX[expr.name]} {args[1]}"
            return f"({infix})" if nested else infix
        name = dtypes.name(expr.dtype) if expr.name == "cast" else expr.name
        if expr.name == "bitcast":
            name = f"bitcast_{dtypes.name(expr.dtype)}"
        return f"{name}({', '.join(args)})"
