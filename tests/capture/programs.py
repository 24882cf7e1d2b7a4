"""Random small Python programs: one function in source text, its arguments, the constructs it uses.

    write(random, dialect) -> Program

A `Dialect` says what values are: leaves, operations, conditions, statements of its own, arguments. The grammar of
control flow around them is the same for all: `Plain` is ints and lists, a dialect of tensors has only to say how a
tensor is made, combined and asked.
Any `random.Random` will do; hypothesis' `randoms(use_true_random=False)` makes programs that shrink.

A program ends: loops run over short ranges or count their rounds. It may raise; variables may be unbound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

__all__ = ["Dialect", "Plain", "Program", "Where", "Writer", "write"]

ROUNDS = 4


@dataclass
class Program:
    source: str
    name: str
    calls: list[tuple[Any, ...]]
    constructs: Counter[str]

    def load(self, namespace: dict[str, Any], filename: str) -> Callable[..., Any]:
        """Runs the source; the function it defines. `filename` must be where its lines can be found (linecache)."""
        exec(compile(self.source, filename, "exec"), namespace)
        return namespace[self.name]


class Dialect:
    """What values are. Each method gives source text; `names` are variables that may have a value."""

    parameters: tuple[str, ...] = ("a", "b", "c")
    variables: tuple[str, ...] = ("x", "y", "z")
    constants: tuple[str, ...] = ("0", "1", "2", "3")
    raises: tuple[str, ...] = ("ValueError", "KeyError")

    def leaf(self, random: Random, names: tuple[str, ...]) -> str:
        return random.choice(names if random.random() < 0.75 else self.constants)

    def operation(self, random: Random, left: str, right: str) -> str:
        raise NotImplementedError

    def condition(self, random: Random, left: str, right: str) -> str:
        raise NotImplementedError

    def items(self, random: Random, value: str) -> str:
        """Something short to iterate over."""
        raise NotImplementedError

    def statement(self, random: Random, names: tuple[str, ...], value: str) -> str:
        """A statement that only this dialect has."""
        raise NotImplementedError

    def arguments(self, random: Random) -> tuple[Any, ...]:
        raise NotImplementedError


class Plain(Dialect):
    """Small ints; every operation is said aloud by `say`, and the list `out` is what the program leaves."""

    def operation(self, random: Random, left: str, right: str) -> str:
        shape = random.choice([
            "{} + {}", "{} - {}", "{} * {} % 7", "{} // {}", "say({}) - {}", "min({}, {})", "abs({} - {})",
            "max([{}, {}])", "sum(range({} % 3)) + {}", "divmod({}, 3)[0] + {}", "int({}) ^ {}"])
        return "(" + shape.format(left, right) + ")"

    def condition(self, random: Random, left: str, right: str) -> str:
        shape = random.choice([
            "{} < {}", "{} == {}", "{} != {}", "{} in [{}, 2]", "{} not in ({}, 1)", "{} % 2 and say({})",
            "say({}) > {}", "bool({}) or {} > 2"])
        return "(" + shape.format(left, right) + ")"

    def items(self, random: Random, value: str) -> str:
        shapes = ["range({} % 4)", "[{}, 2]", "(3, {}, 1)", "sorted([2, {}])"]
        if ":=" not in value:       # which Python forbids there
            shapes.append("[v for v, w in zip([{}, 1], 'ab')]")
        return random.choice(shapes).format(value)

    def statement(self, random: Random, names: tuple[str, ...], value: str) -> str:
        return random.choice([f"out.append({value})", f"say({value})", f"out[-1:] = [{value}, 5]", "del out[:1]",
                              f"out += [{value}]", f"out[{value} % 2] = {value}"])

    def arguments(self, random: Random) -> tuple[Any, ...]:
        return tuple(random.randrange(-2, 6) for _ in self.parameters)


@dataclass
class Where:
    """What may stand here."""

    loop: bool = False
    depth: int = 0
    function: int = 0           # how deep in nested functions
    generator: bool = False
    names: tuple[str, ...] = field(default=())


class Writer:
    def __init__(self, random: Random, dialect: Dialect, generator: bool) -> None:
        self.random = random
        self.dialect = dialect
        self.generator = generator
        self.counts: Counter[str] = Counter()
        self.fresh = 0

    def count(self, construct: str) -> None:
        self.counts[construct] += 1

    def new(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # expressions

    def value(self, where: Where, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.35:
            return self.dialect.leaf(self.random, where.names)
        left, right = self.value(where, depth - 1), self.value(where, depth - 1)
        kind = self.random.randrange(12)
        if kind == 0:
            self.count("ternary")
            return f"({left} if {self.condition(where, depth - 1)} else {right})"
        if kind == 1:
            self.count("and or")
            return f"({left} {self.random.choice(['and', 'or'])} {right})"
        if kind == 2:
            return self.comprehension(where, depth - 1)
        if kind == 3:
            self.count("walrus")
            return f"({self.random.choice(self.dialect.variables)} := {left})"
        if kind == 4:
            self.count("lambda")
            inner = self.value(where, depth - 1)
            return f"(lambda q, r={right}: (q if {self.condition(where, 0)} else r) + {inner})({left})"
        return self.dialect.operation(self.random, left, right)

    def condition(self, where: Where, depth: int = 2) -> str:
        left, right = self.value(where, max(0, depth - 1)), self.value(where, max(0, depth - 1))
        plain = self.dialect.condition(self.random, left, right)
        kind = self.random.randrange(10) if depth else 9
        if kind == 0:
            self.count("not")
            return f"(not {plain})"
        if kind == 1:
            self.count("and or")
            return f"({plain} {self.random.choice(['and', 'or'])} {self.condition(where, depth - 1)})"
        if kind == 2:
            self.count("chain")
            return f"({left} < {right} <= {self.value(where, depth - 1)})"
        if kind == 3:
            self.count("walrus")
            return f"(({self.random.choice(self.dialect.variables)} := {left}) > {right} and {plain})"
        if kind == 4:
            self.count("any all")
            return f"{self.random.choice(['any', 'all'])}({plain} for g in {self.items(where)})"
        return plain

    def items(self, where: Where) -> str:
        """What a comprehension runs over: no `:=` may stand there."""
        return self.dialect.items(self.random, self.value(where, 0))

    def comprehension(self, where: Where, depth: int) -> str:
        self.count("comprehension")
        items = self.items(where)
        inside = Where(names=(*where.names, "g"))
        test = f" if {self.condition(inside, depth)}" if self.random.random() < 0.6 else ""
        element = self.value(inside, depth)
        return self.random.choice([f"len([{element} for g in {items}{test}])", f"sum({element} for g in {items}{test})",
                                   f"max([{element} for g in {items}{test}] or [0])",
                                   f"len({{{element} for g in {items}{test}}})",
                                   f"len({{g: {element} for g in {items}{test}}})",
                                   f"sum([{element} for h in range(2) for g in {items}{test}])"])

    # statements

    def block(self, where: Where) -> list[str]:
        inside = Where(where.loop, where.depth + 1, where.function, where.generator, where.names)
        lines: list[str] = []
        for _ in range(self.random.randrange(1, 4 if where.depth < 2 else 3)):
            lines += self.statement(inside)
        return ["    " + line for line in lines]

    def statement(self, where: Where) -> list[str]:
        kinds = [self.assign, self.assign, self.own, self.jump]
        if where.depth < 3:
            kinds += [self.if_] * 3 + [self.for_] * 2
            kinds += [self.while_, self.try_, self.with_, self.match, self.function]
        return self.random.choice(kinds)(where)

    def assign(self, where: Where) -> list[str]:
        target, value = self.random.choice(self.dialect.variables), self.value(where)
        kind = self.random.randrange(12)
        if kind == 0:
            self.count("augmented")
            return [f"{target} += {value}"]
        if kind == 1:
            self.count("star")
            return [f"{target}, *rest = [{value}, {self.value(where)}, 3]"]
        if kind == 2:
            self.count("del")
            plain = where.function or self.random.random() < 0.3
            return [f"del {target}" if plain else f"{target}: int = {value}"]
        if kind == 3:
            self.count("assert")
            return [f"assert {self.condition(where)}, {value}"]
        return [f"{target} = {value}"]

    def own(self, where: Where) -> list[str]:
        return [self.dialect.statement(self.random, where.names, self.value(where))]

    def jump(self, where: Where) -> list[str]:
        kind = self.random.randrange(5)
        if where.loop and kind < 3:
            word = self.random.choice(["break", "continue"])
            self.count(word)
            jump = word
        elif kind == 3:
            self.count("raise")
            jump = f"raise {self.random.choice(self.dialect.raises)}({self.value(where, 1)})"
        elif where.generator and kind != 4:
            self.count("yield")
            return [f"yield {self.value(where)}"]
        else:
            self.count("return")
            jump = f"return {self.value(where)}"
        if self.random.random() < 0.6:
            return [f"if {self.condition(where)}:", "    " + jump]
        return [jump]

    def if_(self, where: Where) -> list[str]:
        self.count("if")
        lines = [f"if {self.condition(where)}:", *self.block(where)]
        while self.random.random() < 0.25:
            lines += [f"elif {self.condition(where)}:", *self.block(where)]
        return lines + (["else:", *self.block(where)] if self.random.random() < 0.5 else [])

    def looped(self, where: Where) -> Where:
        return Where(True, where.depth, where.function, where.generator, where.names)

    def while_(self, where: Where) -> list[str]:
        self.count("while")
        rounds = self.new("n")
        test = "True" if self.random.random() < 0.25 else self.condition(where)
        lines = [f"{rounds} = 0", f"while {test}:", f"    {rounds} += 1", f"    if {rounds} > {ROUNDS}: break",
                 *self.block(self.looped(where))]
        return lines + (["else:", *self.block(where)] if self.random.random() < 0.3 else [])

    def for_(self, where: Where) -> list[str]:
        self.count("for")
        target = self.random.choice(self.dialect.variables)
        items = self.dialect.items(self.random, self.value(where, 1))
        if self.random.random() < 0.2:
            target, items = f"{target}, i", f"enumerate({items})"
        lines = [f"for {target} in {items}:", *self.block(self.looped(where))]
        return lines + (["else:", *self.block(where)] if self.random.random() < 0.3 else [])

    def try_(self, where: Where) -> list[str]:
        self.count("try")
        lines = ["try:", *self.block(where)]
        handled = self.random.random() < 0.75
        if handled:
            name = " as e" if self.random.random() < 0.4 else ""
            lines += [f"except (ValueError, TypeError){name}:", *self.block(where)]
            if self.random.random() < 0.3:
                lines += ["except Exception:", *self.block(where)]
                lines += ["    raise"] if self.random.random() < 0.3 else []
            if self.random.random() < 0.3:
                lines += ["else:", *self.block(where)]
        if not handled or self.random.random() < 0.4:
            self.count("finally")
            lines += ["finally:", *self.block(where)]
        return lines

    def with_(self, where: Where) -> list[str]:
        self.count("with")
        managers = [f"{self.random.choice(['Quiet', 'Loud'])}({self.value(where, 1)})"
                    for _ in range(self.random.choice([1, 1, 2]))]
        return [f"with {', '.join(managers)}:", *self.block(where)]

    def match(self, where: Where) -> list[str]:
        self.count("match")
        subject = self.random.choice(["@", "[@, 1]", '{"k": @}', "(@, [2, @])"]).replace("@", self.value(where, 1))
        lines = [f"match {subject}:"]
        variable = self.random.choice(self.dialect.variables)
        patterns = ["1", "0 | 2", "int()", f"[{variable}, 1]", f"[1, *{variable}]", f'{{"k": {variable}}}', variable,
                    f"(1 | 2 as {variable}, [2, _])", "[_, [_, 3]]", "None", '{"k": 1, **rest}']
        for _ in range(self.random.randrange(1, 4)):
            pattern = self.random.choice(patterns)
            guard = f" if {self.condition(where, 1)}" if pattern == variable or self.random.random() < 0.3 else ""
            lines += [f"    case {pattern}{guard}:", *("    " + line for line in self.block(where))]
        if self.random.random() < 0.5:
            lines += ["    case _:", *("    " + line for line in self.block(where))]
        return lines

    def function(self, where: Where) -> list[str]:
        if where.function > 1:
            return self.assign(where)
        self.count("nested def")
        name, shared = self.new("f"), self.random.choice(self.dialect.variables)
        inside = Where(False, where.depth + 1, where.function + 1, False, (*where.names, "p"))
        declared = [f"    nonlocal {shared}"] if self.random.random() < 0.5 else []
        body = self.block(inside)
        target = self.random.choice(self.dialect.variables)
        return [f"def {name}(p, s={self.value(where, 1)}):", *declared, *body, f"    return {self.value(inside, 1)}",
                f"{target} = {name}({self.value(where, 1)})"]


def write(random: Random, dialect: Dialect, *, generator: bool = False, calls: int = 3) -> Program:
    """A program with the arguments of some calls; `generator`: one that yields."""
    writer = Writer(random, dialect, generator)
    names = (*dialect.parameters, *dialect.variables)
    where = Where(names=names, generator=generator)
    body = [f"    {random.choice(dialect.variables)} = {dialect.leaf(random, dialect.parameters)}"
            for _ in range(random.randrange(1, 4))]
    body += [f"    {name} = 0" for name in dialect.variables[:1]]
    for _ in range(2):
        body += writer.block(where)
    # Each variable is bound somewhere, so that nested functions may say `nonlocal`.
    body += [f"    return {', '.join(dialect.parameters)}, out", *(f"    {name} = 0" for name in dialect.variables)]
    if generator:
        body.append("    yield")
    source = "\n".join([f"def program({', '.join(dialect.parameters)}):", "    out = []", *body, ""])
    return Program(source, "program", [dialect.arguments(random) for _ in range(calls)], writer.counts)
