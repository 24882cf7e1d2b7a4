"""Random small programs on tensors, whose control flow depends on values.

    Kinds ::= M f32[2, 3]   V f32[3]   S f32[]   Q i64[3]   K i64[]   N int, perhaps of a tensor   C condition

A program is a function of (a, b: M; c: V; q: Q; k: K; p: int) or the `forward` of a module with a buffer, a counter and
a list. Numbers stay small and are multiples of a power of two where they can, so that paths do not hang on rounding.
Variables have one kind each, but for some assignments that change it.
"""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import nn

from tests.capture.programs import Dialect, Program, Where, Writer

__all__ = ["arguments", "load", "write"]

NAMES = {"M": ("x", "y", "z"), "V": ("v", "w"), "S": ("s",), "Q": ("h",), "K": ("t",), "N": ("i", "j"), "L": ("r",)}
GIVEN = {"M": ("a", "b"), "V": ("c",), "S": (), "Q": ("q",), "K": ("k",), "N": ("p",), "L": ()}

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "M": ("{M} + {M}", "{M} - {M}", "{M} * 0.5", "{M} + {V}", "{M} * {N}", "{M} + {N}", "{M} - {S}", "{M}.relu()",
          "{M}.abs()", "-{M}", "{M}.clone()", "torch.where({M} > 0, {M}, {M})", "torch.stack([{V}, {V}])",
          "{M}.clamp(-4, 4)", "{M} + {K}", "{V}.expand(2, 3)", "{M}.t().contiguous().t()", "torch.maximum({M}, {M})",
          "{r}[0]", "{r}[-1]", "{r}[{N} % 1]", "sum({r})", "{M}.detach()", "{M}.flip(0)", "({M} * {M}).clamp(-4, 4)",
          "{M}.view(2, 3)", "{M}[:]", "{M}.view(-1).view(2, 3)", "torch.full((2, 3), 0.5)", "{M} * {S}.item()",
          "helper({M})", "helper({M}, {N})", "F.pad({M}[:, 1:], (1, 0))", "{M} + torch.rand(2, 3).round()",
          "max({M}, {M}, key=total)", "d['k']", "d.get('k')"),
    "V": ("{M}[0]", "{M}[1]", "{M}[{N} % 2]", "{M}[{K} % 2]", "{M}.sum(0)", "{V} + {V}", "{V} * 0.5", "{V}.clone()",
          "{V} - {N}", "{V}.abs()", "-{V}", "{M}[-1, :]", "{V}.flip(0)", "{Q} * 0.5", "{M}.amax(0)",
          "{V}[{Q}.abs() % 3]",
          "{M}.view(-1)[1:4]", "{M}.view(-1)[::2]"),
    "S": ("{M}.sum()", "{V}.sum()", "{V}[0]", "{V}[{N} % 3]", "{V}[{K} % 3]", "{S} + {S}", "{S} * 0.5", "{M}.max()",
          "{V}.min()", "torch.tensor(1.5)", "{M}[0, 1]", "{S} - {N}", "max({S}, {S})", "abs({S})", "sum({V})"),
    "Q": ("{Q} + {N}", "{Q} * 2 - {K}", "{V}.round().long()", "{Q}.clone()", "{V}.argsort()", "torch.arange(3)"),
    "K": ("{Q}.sum()", "{Q}[{N} % 3]", "({M} > 0).sum()", "{K} + 1", "{K} % 3", "{V}.argmax()", "{K} // 2",
          "torch.tensor({N})"),
    "N": ("int({K})", "{K}.item()", "int({S}.clamp(-9, 9))", "{N} + 1", "{N} - {N}", "{N} % 3", "{N} // 2", "len({r})",
          "min({N}, {N})", "max({N}, 2)", "abs({N})", "{N} * 2 % 7", "{M}.shape[1]", "int({C})", "sum([{N}, {N}])",
          "round({S}.item())", "{M}.dim()", "len([g for g in {V} if g > 0])", "{M}.size(0) + {N}"),
    "C": ("{S} > 0", "{S} > {S}", "{N} > 1", "{N} == {N}", "{N} < {N}", "{K} == 2", "{K} > {N}", "({M} > 0).all()",
          "({M} > 2).any()", "{V}.sum() <= {S}", "bool({S} > 1)", "{S}.item() > 0.5", "{N} in (1, 3)", "{K} % 2",
          "{M} is {M}", "torch.equal({V}, {V})", "{N} % 2 == 0", "{N} % 2", "{S}", "{N} not in [0, 2]", "{r}",
          "bool({N})", "{M}.max() > 1", "{V}[0] >= {V}[1]", "{S} in {V}", "isinstance({N}, int)"),
}

STATEMENTS: tuple[str, ...] = (
    "{M}.add_({M})", "{M}.add_(1)", "{M}.mul_(0.5)", "{M}[0] = {V}", "{M}[{N} % 2] += {V}", "{V}.add_(1)",
    "{M}[{M} > 1] = 0.5", "{M}.copy_({M})", "{M}.zero_()", "{M}.t().add_(1)", "{M}.view(-1)[1:3].mul_(2)",
    "{M}[:, 1:].neg_()", "{M}[0, 1] = {S}", "{V}[{K} % 3] = 2.0", "{M}.fill_({N})", "{V}[1:] = {N}", "{S}.add_(1)",
    "{K}.add_(1)", "{Q}[0] = {N}", "{Q}.add_({K})", "torch.add({V}, 1, out={V})", "{M}.relu_()", "{M}[0].sub_({M}[1])",
    "{r}.append({M})", "{r}[0] = {M}", "{r}[-1].add_(1)", "{r}.pop()", "{r}.extend([{M}, {M}])", "{r}.insert(0, {M})",
    "{r} += [{M}]", "d['k'] = {M}", "d['k'].add_(1)", "d['n'] = {N}", "d.setdefault('m', {M})", "del {r}[1:]",
)

# What a module may do to itself.
OWN: tuple[str, ...] = (
    "self.count += 1", "self.total.add_(1)", "self.total.add_({V}.detach())", "self.count = {N}",
    "self.seen.append({N})", "self.last = {M}.detach()", "self.total[0] = {N}", "self.seen[:] = [self.count]",
)
OWN_EXPRESSIONS = {"V": ("self.total", "self.total + {V}", "self.scale * {V}"), "N": ("self.count", "len(self.seen)"),
                   "M": ("self.layer({M})", "self.last", "self.twice({M})")}


class Tensors(Dialect):
    parameters = ("a", "b", "c", "q", "k", "p")
    variables = ("x", "y", "z", "v", "w", "s", "i", "j")


class TensorWriter(Writer):
    def __init__(self, random: Random, module: bool, deepest: int) -> None:
        super().__init__(random, Tensors(), False)
        self.module = module
        self.deepest = deepest

    # expressions

    def kind(self, kind: str, where: Where, depth: int) -> str:
        """An expression of a kind."""
        names = [*NAMES[kind], *GIVEN[kind]] if kind != "C" else []
        if kind == "L":
            return "r"
        if kind != "C" and (depth <= 0 or self.random.random() < 0.45):
            if kind == "N" and self.random.random() < 0.4:
                return self.random.choice("0123")
            if kind == "S" and self.random.random() < 0.3:
                return "c[1]"
            return self.random.choice(names)
        draw = self.random.random()
        if kind == "C":
            return self.condition(where, depth)
        if draw < 0.07:
            self.count("ternary")
            return f"({self.kind(kind, where, depth - 1)} if {self.condition(where, 0)} else " \
                   f"{self.kind(kind, where, depth - 1)})"
        if draw < 0.09:
            self.count("lambda")
            return f"(lambda g, n={self.kind('N', where, 0)}: g + n if {self.condition(where, 0)} else g)" \
                   f"({self.kind(kind, where, depth - 1)})"
        if draw < 0.11:
            self.count("walrus")
            return f"({self.random.choice(NAMES[kind])} := {self.kind(kind, where, depth - 1)})"
        if draw < 0.12 and kind == "N":
            self.count("and or")
            return f"({self.kind('N', where, 0)} {self.random.choice(['and', 'or'])} {self.kind('N', where, 0)})"
        choices = EXPRESSIONS[kind]
        if self.module and self.random.random() < 0.1:
            choices = OWN_EXPRESSIONS.get(kind, choices)
        return "(" + self.fill(self.random.choice(choices), where, depth - 1) + ")"

    def fill(self, text: str, where: Where, depth: int) -> str:
        """A template with an expression in every place; no `:=` stands in what a comprehension runs over."""
        while True:
            done = self._filled(text, where, depth)
            if " for " not in text or ":=" not in done:
                return done

    def _filled(self, text: str, where: Where, depth: int) -> str:
        parts = text.split("{")
        done = parts[0]
        for part in parts[1:]:
            kind, rest = part.split("}", 1) if "}" in part else ("", part)
            if kind == "r":
                done += "r" + rest
            elif kind in ("M", "V", "S", "Q", "K", "N", "C"):
                done += self.kind(kind, where, depth) + rest
            else:
                done += "{" + part
        return done

    def value(self, where: Where, depth: int = 2) -> str:
        return self.kind(self.random.choice("MMMVSN"), where, depth)

    def condition(self, where: Where, depth: int = 1) -> str:
        plain = "(" + self.fill(self.random.choice(EXPRESSIONS["C"]), where, depth - 1) + ")"
        kind = self.random.randrange(12) if depth > 0 else 11
        if kind == 0:
            self.count("not")
            return f"(not {plain})"
        if kind == 1:
            self.count("and or")
            return f"({plain} {self.random.choice(['and', 'or'])} {self.condition(where, depth - 1)})"
        if kind == 2:
            self.count("chain")
            some = self.random.choice("SNK")
            return f"({self.kind(some, where, 0)} < {self.kind(some, where, 0)} <= {self.kind(some, where, 0)})"
        if kind == 3:
            self.count("any all")
            return f"{self.random.choice(['any', 'all'])}(g > {self.kind('N', where, 0)} for g in " \
                   f"{self.kind('V', where, 0)})"
        return plain

    # statements

    def statement(self, where: Where) -> list[str]:
        kinds: list[Callable[[Where], list[str]]] = [self.assign, self.assign, self.own, self.own, self.jump]
        if where.depth < self.deepest:
            kinds += [self.if_] * 4 + [self.for_] * 2 + [self.while_] * 2
            kinds += [self.try_, self.with_, self.match, self.function, self.gather]
        return self.random.choice(kinds)(where)

    def assign(self, where: Where) -> list[str]:
        kind = self.random.choice("MMMVVSNNKQ")
        target = self.random.choice(NAMES[kind])
        draw = self.random.randrange(16)
        if draw == 0:
            self.count("augmented")
            return [f"{target} += {self.kind(kind, where, 1)}"]
        if draw == 1:
            self.count("alias")
            return [f"{target} = {self.random.choice([*NAMES[kind], *GIVEN[kind]])}"]
        if draw == 2:
            self.count("swap")
            pair = self.random.choice(["x, y", "v, w", "i, j", "y, z"])
            left, right = pair.split(", ")
            return [f"{pair} = {right}, {left}"]
        if draw == 3:
            self.count("star")
            return [f"x, *r = [{self.kind('M', where, 1)}, {self.kind('M', where, 1)}, {self.kind('M', where, 1)}]"]
        if draw == 4:
            self.count("assert")
            return [f"assert {self.condition(where)}, 'no'"]
        if draw == 5 and self.random.random() < 0.5:
            self.count("another kind")
            return [f"{target} = {self.value(where)}"]
        if draw == 6 and self.random.random() < 0.4:
            self.count("del")
            return [f"del {self.random.choice(['z', 'w', 'j'])}"]
        if draw == 7:
            self.count("late")
            return [f"u = {self.kind('M', where, 1)}"] if self.random.random() < 0.6 else [f"{target} = u + 1"]
        if draw == 8 and self.random.random() < 0.2:
            self.count("print")
            return ["print('here')"]
        return [f"{target} = {self.kind(kind, where, 2)}"]

    def own(self, where: Where) -> list[str]:
        choices = OWN if self.module and self.random.random() < 0.4 else STATEMENTS
        text = self.random.choice(choices)
        self.count("in place" if "_(" in text or "] = " in text or "] +=" in text else "object")
        return [self.fill(text, where, 0)]

    def jump(self, where: Where) -> list[str]:
        kind = self.random.randrange(6)
        if where.loop and kind < 3:
            jump = self.random.choice(["break", "continue"])
            self.count(jump)
        elif kind == 3:
            self.count("raise")
            message = "'bad'" if self.random.random() < 0.8 else f"f'bad {{{self.kind('N', where, 0)}}}'"
            jump = f"raise {self.random.choice(['ValueError', 'KeyError'])}({message})"
        else:
            self.count("return")
            jump = f"return {self.result(where)}"
        if where.depth < 2 or self.random.random() < 0.85:
            return [f"if {self.condition(where)}:", "    " + jump]
        return [jump]

    def result(self, where: Where) -> str:
        draw = self.random.random()
        if where.function or draw < 0.6:
            return self.kind("M", where, 1)
        if draw < 0.8:
            return f"{self.kind('M', where, 1)}, {self.kind('V', where, 0)}"
        return self.value(where)

    def for_(self, where: Where) -> list[str]:
        self.count("for")
        target, items = self.random.choice([
            ("i", "range({N} % 4)"), ("i", "range(int({K}) % 4)"), ("i", "range({K} % 3)"),
            ("j", "range(1, {N} % 6, 2)"), ("v", "{M}"), ("s", "{V}"), ("i", "range(3)"),
            ("i, v", "enumerate({M})"), ("x", "r[:3]"),
            ("v, w", "zip({M}, {M})"), ("i", "reversed(range({N} % 4))"), ("t", "({V} > 0).nonzero().flatten()"),
            ("i, x", "enumerate(r[:2])"), ("i", "{Q}.tolist()"), ("j", "[0, {N}]"), ("i", "range({N} % 4, -1, -1)")])
        items = self.fill(items, where, 0)
        lines = [f"for {target} in {items}:", *self.block(self.looped(where))]
        return lines + (["else:", *self.block(where)] if self.random.random() < 0.2 else [])

    def try_(self, where: Where) -> list[str]:
        self.count("try")
        lines = ["try:", *self.block(where)]
        if self.random.random() < 0.8:
            lines += [f"except {self.random.choice(['ValueError', '(KeyError, IndexError)', 'Exception'])}:",
                      *self.block(where)]
            if self.random.random() < 0.3:
                lines += ["else:", *self.block(where)]
            if self.random.random() < 0.3:
                lines += ["finally:", *self.block(where)]
            return lines
        self.count("finally")
        return [*lines, "finally:", *self.block(where)]

    def with_(self, where: Where) -> list[str]:
        self.count("with")
        manager = self.random.choice(["torch.no_grad()", "contextlib.nullcontext()", "torch.enable_grad()",
                                      "contextlib.suppress(ValueError)"])
        return [f"with {manager}:", *self.block(where)]

    def match(self, where: Where) -> list[str]:
        self.count("match")
        subject = self.random.choice(["{N}", "{N}, {N}", "int({K})"])
        lines = [f"match {self.fill(subject, where, 0)}:"]
        for _ in range(self.random.randrange(1, 4)):
            pattern = self.random.choice(["1", "0 | 2", "[i, 1]", "(1 | 2 as j, _)", "int()", "[0, j]"])
            guard = f" if {self.condition(where)}" if self.random.random() < 0.3 else ""
            lines += [f"    case {pattern}{guard}:", *("    " + line for line in self.block(where))]
        if self.random.random() < 0.5:
            lines += ["    case _:", *("    " + line for line in self.block(where))]
        return lines

    def function(self, where: Where) -> list[str]:
        if where.function > 1:
            return self.assign(where)
        self.count("nested def")
        name, shared = self.new("f"), self.random.choice(("x", "i", "v"))
        inside = Where(False, where.depth + 1, where.function + 1, False, ())
        declared = [f"    nonlocal {shared}"] if self.random.random() < 0.6 else []
        if declared:
            self.count("nonlocal")
        if self.random.random() < 0.25:
            self.count("yield")
            return [f"def {name}():", f"    for g in range({self.kind('N', where, 0)} % 4):",
                    f"        if {self.condition(where)}:", f"            yield {self.kind('M', where, 1)} + g",
                    f"r = list({name}())" if self.random.random() < 0.5 else f"x = sum({name}(), a)"]
        body = [line for line in self.block(inside)]
        unbound = [] if declared else [f"    {n} = {v}" for n, v in START]
        return [f"def {name}(a, p=1):", *declared, *unbound, *body, f"    return {self.kind('M', inside, 1)}",
                f"{self.random.choice(NAMES['M'])} = {name}({self.kind('M', where, 1)}, {self.kind('N', where, 0)})"]

    def gather(self, where: Where) -> list[str]:
        """A list built by a comprehension or a loop."""
        self.count("comprehension")
        test = f" if {self.condition(where, 0)}" if self.random.random() < 0.4 else ""
        return [self.fill(self.random.choice([
            "r = [{M} + g for g in range({N} % 4)" + test + "]", "r = [{M} * g for g in {V} if g > 0]",
            "i = sum(1 for g in {V} if g > {N})", "r = [g + {M} for g in {M}" + test + "]",
            "d = {'k': {M}, 'n': {N}}", "r = sorted([{M}, {M}], key=total)", "s = max(g for g in {V})",
            "r = [g if g.sum() > 0 else -g for g in r]", "j = max([int(g) for g in {Q}])"]), where, 0)]


START = [("x", "a * 2"), ("y", "b.clone()"), ("z", "a + b"), ("v", "c * 0.5"), ("w", "a[0]"), ("s", "c.sum()"),
         ("h", "q + 1"), ("t", "k + 1"), ("i", "0"), ("j", "p"), ("r", "[a + 1]"), ("d", "{'k': b * 2}")]


def write(random: Random, *, grad: bool = False, deepest: int = 3) -> Program:
    """A program; `grad`: one that writes to no argument in place, which is refused while it requires grad."""
    module = random.random() < 0.3
    writer = TensorWriter(random, module, min(deepest, random.choice([1, 2, 2, 3])))
    if module:
        writer.count("module")
    where = Where()
    start = [(name, random.choice(["a", "b", "a.clone()"]) if name in "xyz" and random.random() < 0.4 else text)
             for name, text in START]
    body = ["    a, b, c = a * 1, b * 1, c * 1"] if grad else []
    body += [f"    {name} = {text}" for name, text in start if name not in "zwj" or random.random() < 0.9]
    for _ in range(random.choice([1, 1, 1, 2])):
        body += writer.block(where)
    results = random.sample(["x", "y", "v", "i", "s", "r", "w", "t", "d", "z"], random.randrange(1, 4))
    body += [f"    return {', '.join(results)}", *(f"    {name} = 0" for name in "zwj")]
    if module:
        lines = ["class program(Base):", "    def forward(self, a, b, c, q, k, p):", *("    " + line for line in body)]
    else:
        lines = ["def program(a, b, c, q, k, p):", *body]
    return Program("\n".join([*lines, ""]), "program", [(random.randrange(1 << 20),) for _ in range(4)], writer.counts)


def arguments(seed: int) -> tuple[Any, ...]:
    """Tensors that differ in the paths they take, in some calls views of one another."""
    random = Random(seed)

    def numbers(*shape: int) -> torch.Tensor:
        count = int(torch.Size(shape).numel())
        return torch.tensor([random.randrange(-12, 13) / 4 for _ in range(count)]).reshape(shape)

    a, b, c = numbers(2, 3), numbers(2, 3), numbers(3)
    q = torch.tensor([random.randrange(-2, 4) for _ in range(3)])
    k = torch.tensor(random.choice([0, 1, 2, 3, 4]))
    return a, b, c, q, k, 2


def total(value: torch.Tensor) -> torch.Tensor:
    return value.sum()


def helper(value: torch.Tensor, amount: Any = 1) -> torch.Tensor:
    if value.sum() > amount:
        return value - amount
    for _ in range(2):
        value = value + 0.5
        if value.max() > 2:
            break
    return value


class Base(nn.Module):
    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.scale = nn.Parameter(torch.tensor([0.5, 1.0, -1.0]))
        self.layer = nn.Linear(3, 3)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[0.5, 0.0, 0.25], [0.0, -0.5, 0.0], [1.0, 0.0, 0.0]]))
            self.layer.bias.fill_(0.25)
        self.count = 0
        self.seen: list[Any] = []
        self.last = torch.ones(2, 3)

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * 2 if x.max() > 1 else x


def load(program: Program, number: int) -> Callable[[], Any]:
    """Makes the program's function, or a new instance of its module."""
    filename = f"/random programs/{number}.py"     # as of a user
    linecache.cache[filename] = (len(program.source), None, program.source.splitlines(True), filename)
    namespace: dict[str, Any] = {
        "torch": torch, "F": nn.functional, "contextlib": contextlib, "helper": helper, "total": total,
        "Base": Base, "__name__": "program"}
    made = program.load(namespace, filename)
    return made if isinstance(made, type) else lambda: made
