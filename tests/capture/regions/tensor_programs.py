"""Random small programs on tensors, whose control flow depends on values.

    Kinds ::= M f32[2, 3]   V f32[3]   S f32[]   Q i64[3]   K i64[]   N int, perhaps of a tensor   C condition

A program is a function of (a, b: M; c: V; q: Q; k: K; p: int) or the `forward` of a module with a buffer, a counter and
a list. Numbers stay small and are multiples of a power of two where they can, so that paths do not hang on rounding.
Variables have one kind each, but for some assignments that change it.
"""

from __future__ import annotations

import functools
import linecache
import re
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from tests.capture.programs import Dialect, Program, Where, Writer
from tests.capture.regions import namespace, vocabulary
from tests.capture.regions.vocabulary import EXPRESSIONS, GIVEN, NAMES, OWN, OWN_EXPRESSIONS, START, STATEMENTS

__all__ = ["arguments", "file_of", "load", "write"]

KINDS = ("M", "V", "S", "Q", "K", "N", "C")
SURROUNDINGS = Path(str(namespace.__file__))


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
            kind, closed, rest = part.partition("}")
            if closed and kind == "r":
                done += "r" + rest
            elif closed and kind in KINDS:
                done += self.kind(kind, where, depth) + rest
            elif closed and kind.upper() in KINDS:
                done += self.random.choice(NAMES[kind.upper()]) + rest
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
            kinds += [self.try_, self.with_, self.match, self.function, self.gather, self.piece, self.piece, self.piece]
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
        elif kind == 3 and self.random.random() < 0.6:
            self.count("raise")
            message = "'bad'" if self.random.random() < 0.8 else f"f'bad {{{self.kind('N', where, 0)}}}'"
            jump = f"raise {self.random.choice(['ValueError', 'KeyError'])}({message})"
        else:
            self.count("return")
            jump = f"return {self.result(where)}"
        if where.depth < 2 or self.random.random() < 0.9:
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
        target, items = self.random.choice(vocabulary.ITEMS)
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
        body = [*self.block(inside), f"    return {self.kind('M', inside, 1)}"]
        unbound = [] if declared else started(body, "    ")
        return [f"def {name}(a, p=1):", *declared, *unbound, *body,
                f"{self.random.choice(NAMES['M'])} = {name}({self.kind('M', where, 1)}, {self.kind('N', where, 0)})"]

    def piece(self, where: Where) -> list[str]:
        """Several lines that stand for one construct."""
        construct, lines = self.random.choice(vocabulary.PIECES)
        return self.placed(construct, lines, where)

    def seldom(self, where: Where) -> list[str]:
        """A piece for a construct that random statements seldom come to."""
        construct = self.random.choice(vocabulary.SELDOM)
        return self.placed(construct, self.random.choice([lines for name, lines in vocabulary.PIECES
                                                          if name == construct]), where)

    def rewriting(self, where: Where) -> list[str]:
        """A piece that writes in place to what has a history, or gets one, in a branch or loop."""
        inside = Where(where.loop, where.depth + 1, where.function, where.generator, where.names)
        self.count("in place under grad")
        return ["    " + line for line in self.written(self.random.choice(vocabulary.REWRITING), inside, "")]

    def opening(self, methods: Sequence[str], where: Where) -> list[str]:
        """How most programs begin: with a call of a method of their own, or what is seldom otherwise."""
        inside = Where(where.loop, where.depth + 1, where.function, where.generator, where.names)
        if self.module and methods and self.random.random() < 0.7:
            name = self.random.choice(methods).removeprefix("def ")
            lines = [self.fill("{m} = self." + name + "({M})", inside, 1)]
        else:
            lines = self.seldom(inside)
        return ["    " + line for line in lines]

    def placed(self, construct: str, lines: tuple[str, ...], where: Where) -> list[str]:
        if (where.function and (construct in ("long loop", "early return") or where.function > 1)) or \
                (where.loop and construct == "long loop"):
            return self.assign(where)
        self.count(construct)
        return self.written(lines, where, self.new("f"))

    def method(self, lines: tuple[str, ...]) -> list[str]:
        """A method of the program's class; it makes what it is not given."""
        self.count("method")
        module, self.module = self.module, False        # it calls no other: some call themselves
        done = self.written(lines, Where(False, 1, 1, False, ()), "")
        self.module = module
        given = {"b": "a * 1", "c": "a[1] * 1", "q": "torch.arange(3)", "k": "torch.tensor(2)", "p": "2"}
        made = [f"    {name} = {text}" for name, text in given.items() if f"{name}=" not in lines[0]]
        return [done[0], *made, *done[1:]] if "    <start>" in lines else done

    def written(self, lines: tuple[str, ...], where: Where, name: str) -> list[str]:
        """A piece filled in; what stands in a function of its own is written as such."""
        done: list[str] = []
        start: int | None = None
        inside = Where(False, where.depth + 1, where.function + 1, False, ())
        function = lines[0].startswith(("def ", "@kept", "@scaled"))
        for line in lines:
            text = line.strip()
            margin = line[:len(line) - len(line.lstrip())]
            function = function and (not done or bool(margin) or line.startswith(("def ", "@kept", "@counted")))
            here = inside if function and margin else where
            if text == "<start>":
                start = len(done)
            elif text in ("<block>", "<loop>"):
                block = self.block(self.looped(here) if text == "<loop>" else here)
                done += [margin + each[4:] for each in block]
            else:
                decorates = line.startswith("@") and line[1:2] not in (" ", "(")
                done.append(self.fill(line if decorates else line.replace("@", name), here, 0))
        return done if start is None else [*done[:start], *started(done[start:], "    "), *done[start:]]

    def gather(self, where: Where) -> list[str]:
        """A list built by a comprehension or a loop."""
        self.count("comprehension")
        test = f" if {self.condition(where, 0)}" if self.random.random() < 0.4 else ""
        return [self.fill(self.random.choice([
            "r = [{M} + g for g in range({N} % 4)" + test + "]", "r = [{M} * g for g in {V} if g > 0]",
            "i = sum(1 for g in {V} if g > {N})", "r = [g + {M} for g in {M}" + test + "]",
            "d = {'k': {M}, 'n': {N}}", "r = sorted([{M}, {M}], key=total)", "s = max(g for g in {V})",
            "r = [g if g.sum() > 0 else -g for g in r]", "j = max([int(g) for g in {Q}])"]), where, 0)]


def started(lines: list[str], margin: str, start: Sequence[tuple[str, str]] = START) -> list[str]:
    """The assignments to those variables that lines use."""
    used = set(re.findall(r"\w+", " ".join(lines)))
    return [f"{margin}{name} = {text}" for name, text in start if name in used]


def write(random: Random, *, grad: bool = False, deepest: int = 3, rewriting: bool = False) -> Program:
    """A program; `grad`: one for gradients, that writes to no argument in place; with `rewriting` it does, and to more
    that has a history."""
    module = random.random() < 0.3
    writer = TensorWriter(random, module, min(deepest, random.choice([1, 2, 2, 3])))
    if module:
        writer.count("module")
    where = Where()
    start = [(name, random.choice(["a", "b", "a.clone()"]) if name in "xyz" and random.random() < 0.4 else text)
             for name, text in START]
    start = [(name, text) for name, text in start if name not in "zwj" or random.random() < 0.9]
    chosen = {lines[0].split("(")[0]: lines for lines in random.sample(vocabulary.METHODS, random.randrange(0, 3))}
    methods = [writer.method(lines) for lines in chosen.values()] if module else []
    body = writer.opening(sorted(chosen), where) if random.random() < 0.8 else []
    if rewriting and random.random() < 0.6:
        body += writer.rewriting(where)
    body += [line for _ in range(random.choice([1, 1, 1, 2])) for line in writer.block(where)]
    results = random.sample(["x", "y", "v", "i", "s", "r", "w", "t", "d", "z", "o.x", "o.n", "list(e)", "sorted(m)"],
                            random.randrange(1, 4))
    body.append(f"    return {', '.join(results)}")
    copied = grad and not (rewriting and random.random() < 0.5)
    body = [*["    a, b, c = a * 1, b * 1, c * 1"] * copied, *started(body, "    ", start), *body,
            *(f"    {name} = 0" for name in "zwj")]
    if module:
        lines = ["class program(Base):", "    def forward(self, a, b, c, q, k, p):", *("    " + line for line in body)]
        lines += ["    " + line for lines in methods for line in lines]
    else:
        lines = ["def program(a, b, c, q, k, p):", *body]
    return Program("\n".join([*lines, ""]), "program", [(random.randrange(1 << 20),) for _ in range(3)], writer.counts)


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


@functools.cache
def surroundings() -> types.CodeType:
    return compile(SURROUNDINGS.read_text(), str(SURROUNDINGS), "exec")


def file_of(number: int) -> str:
    return f"/random programs/{number}.py"         # as of a user


def load(program: Program, number: int) -> tuple[Callable[[], Any], dict[str, Any]]:
    """What makes the program's function, or a new instance of its module, and the globals of its own that it has."""
    filename = file_of(number)
    linecache.cache[filename] = (len(program.source), None, program.source.splitlines(True), filename)
    known: dict[str, Any] = {"__name__": "program"}
    exec(surroundings(), known)
    made = program.load(known, filename)
    return (made if isinstance(made, type) else lambda: made), known
