"""`return`, `break` and `continue` as flags, so that every branch and every loop body has one way out.

    if a: return x          if a: $value = x            no flag where one branch always jumps:
    rest               ->   else: rest                  what follows goes into the other one

    for t in s:             $broke = False
        body           ->   for t in s: body            stop: $broke or $returned
    else: E                 if not $broke: E
    rest                    if not $returned: rest

What must run in the frame of the function itself (`scope.pinned`: a loop around a `yield`) stays Python's and jumps
for real; there a converted statement sets its flags and Python's own `if` acts on them. A `try` that jumps in its
`finally` drops an exception in flight, so it stays Python's too; where it stands in a branch, it sets all flags and
returns from the branch.

An exception after a flag was set (`with` whose exit raises, around a `return`) takes the jump back; who catches it
clears the flags.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from monograph.capture.convert import exits, scope, syntax

__all__ = ["RETURNED", "VALUE", "lower"]

VALUE = syntax.HIDDEN + "value"
RETURNED = syntax.HIDDEN + "returned"
FLAGS = (RETURNED, syntax.HIDDEN + "broke", syntax.HIDDEN + "continued")

Block = list[ast.stmt]


@dataclass(frozen=True)
class Loop:
    broke: str
    continued: str
    native: bool = False        # Python's own loop, in the frame of the function


@dataclass(frozen=True)
class Place:
    """Where a block stands: `own` in the frame of the function; `direct` where jumps are Python's."""

    own: bool
    direct: bool
    loop: Loop | None = None
    returned: str = RETURNED


def lower(body: Block, generator: bool, bare: bool = False) -> Block:
    """The body of a function whose converted statements do not jump. Marks loops with `stop`, statements with `kept`.

    A generator keeps its jumps; `bare`: it may not return a value (it is asynchronous)."""
    lowering = _Lowering(bare)
    if generator or not any(exits.jump_kinds(statement) for statement in body if not isinstance(statement, ast.Return)):
        return _Unread(lowering.read).block(lowering.block(body, Place(own=True, direct=True)))
    if not exits.always_jumps(body):
        body = [*body, syntax.returned(syntax.constant(None), body[-1])]
    lowered = lowering.block(body, Place(own=True, direct=False))
    last = body[-1]
    lowered = [syntax.assign(RETURNED, syntax.false(), body[0]), *lowered]
    lowered.append(syntax.returned(syntax.load(VALUE), last))
    return _Unread(lowering.read).block(lowered)


class _Lowering:
    def __init__(self, bare: bool) -> None:
        self.bare = bare
        self.loops = 0
        self.read: set[str] = set()     # flags that something tests

    def block(self, statements: Block, place: Place) -> Block:
        out: Block = []
        for position, statement in enumerate(statements):
            rest = statements[position + 1:]
            kinds = exits.jump_kinds(statement)
            if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
                return out + self.jump(statement, place)
            if isinstance(statement, ast.Raise):
                return [*out, statement]
            if isinstance(statement, ast.If) and kinds and not place.direct and not scope.pinned([statement]):
                joined = self.joined(statement, rest, place)
                if joined is not None:
                    return [*out, joined]
            ends, stays = exits.always_jumps([statement]), self.stays(statement)
            out += self.statement(statement, kinds, place)
            if ends:
                return out
            if kinds and stays and not place.direct:    # still here: what it may have meant to do is undone
                out += [syntax.assign(self.flag(kind, place), syntax.false(), statement) for kind in kinds]
            elif kinds and rest and not place.direct:
                return [*out, self.guard(kinds, rest, place)]
        return out

    def stays(self, statement: ast.stmt) -> bool:
        """Whether a statement is Python's own and jumps for real."""
        return scope.pinned([statement]) or (
            isinstance(statement, exits.TRIES) and bool(exits.kinds_of(statement.finalbody)))

    def jump(self, statement: ast.stmt, place: Place) -> Block:
        mine = self.flag(type(statement), place)
        value: Block = []
        if isinstance(statement, ast.Return):
            value = [syntax.assign(VALUE, statement.value or syntax.constant(None), statement)]
        if not place.direct:
            return [*value, syntax.assign(mine, syntax.true(), statement)]
        if place.own and (isinstance(statement, ast.Return) or (place.loop is not None and place.loop.native)):
            return [statement]
        return [*value, *self.leave(mine, place, statement)]

    def leave(self, mine: str, place: Place, at: ast.stmt) -> Block:
        """Out of a branch for real: this jump takes the place of any other."""
        flags = self.flags(place)
        self.read.update(flags)
        return [*(syntax.assign(flag, syntax.constant(flag == mine), at) for flag in flags), syntax.returned(None, at)]

    def flags(self, place: Place) -> list[str]:
        return [place.returned, *((place.loop.broke, place.loop.continued) if place.loop is not None else ())]

    def flag(self, kind: type, place: Place) -> str:
        if kind is ast.Return or place.loop is None:
            return place.returned
        return place.loop.broke if kind is ast.Break else place.loop.continued

    def joined(self, statement: ast.If, rest: Block, place: Place) -> ast.stmt | None:
        """What follows an `if` that always jumps on one side belongs to its other side."""
        then, otherwise = exits.always_jumps(statement.body), exits.always_jumps(statement.orelse)
        if not (then or otherwise):
            return None
        if then and otherwise:
            rest = []
        body = self.block(statement.body + ([] if then else rest), self.region(place))
        orelse = self.block(statement.orelse + ([] if otherwise else rest), self.region(place))
        return syntax.at(ast.If(statement.test, body or [ast.Pass()], orelse), statement)

    def region(self, place: Place) -> Place:
        """A block that becomes a function of its own."""
        loop = place.loop
        return replace(place, own=False, direct=False, loop=loop and replace(loop, native=False))

    def apart(self, place: Place) -> Place:
        """A converted statement among Python's own has flags of its own: a jump may be on its way out meanwhile."""
        loop = self.new_loop(native=False)
        return replace(place, loop=place.loop and loop, returned=f"{RETURNED}{self.loops}")

    def guard(self, kinds: frozenset[type], rest: Block, place: Place) -> ast.stmt:
        """`if not (jumped): rest`."""
        test = syntax.at(ast.UnaryOp(ast.Not(), self.any_flag(kinds, place)), rest[0])
        body = self.block(rest, self.region(place))
        return syntax.at(ast.If(test, body or [ast.Pass()], []), rest[0])

    def any_flag(self, kinds: frozenset[type], place: Place) -> ast.expr:
        flags = sorted({self.flag(kind, place) for kind in kinds})
        self.read.update(flags)
        tests: list[ast.expr] = [syntax.load(flag) for flag in flags]
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)

    def statement(self, statement: ast.stmt, kinds: frozenset[type], place: Place) -> Block:
        if isinstance(statement, exits.LOOPS):
            return self.kept_loop(statement, place) if scope.pinned([statement]) else self.loop(statement, kinds, place)
        if isinstance(statement, ast.AsyncFor):
            return self.kept_loop(statement, place)
        if isinstance(statement, ast.If):
            return self.kept_if(statement, place) if scope.pinned([statement]) else self.branch(statement, kinds, place)
        if isinstance(statement, exits.WITHS):
            return self.with_(statement, kinds, place)
        if isinstance(statement, exits.TRIES):
            return self.try_(statement, kinds, place)
        if isinstance(statement, ast.Match):
            statement.kept = True  # type: ignore[attr-defined]
            for case in statement.cases:
                case.body = self.block(case.body, replace(place, direct=True)) or [ast.Pass()]
        return [statement]

    def branch(self, statement: ast.If, kinds: frozenset[type], place: Place) -> Block:
        outside = self.apart(place) if kinds and place.direct else place
        inside = self.region(outside)
        statement.body = self.block(statement.body, inside) or [ast.Pass()]
        statement.orelse = self.block(statement.orelse, inside)
        return self.dispatched(statement, kinds, place, outside)

    def dispatched(self, statement: ast.stmt, kinds: frozenset[type], place: Place, outside: Place) -> Block:
        """A converted statement among Python's own: clear its flags (of `outside`), run it, act on them."""
        if not kinds or not place.direct:
            return [statement]
        ordered = sorted(kinds, key=lambda kind: kind.__name__)
        flags = [self.flag(kind, outside) for kind in ordered]
        self.read.update(flags)
        out: Block = [syntax.assign(flag, syntax.false(), statement) for flag in flags]
        out.append(statement)
        for flag, kind in zip(flags, ordered):
            test = syntax.at(ast.If(syntax.load(flag), self.acted(kind, place, statement), []), statement)
            test.kept = True  # type: ignore[attr-defined]
            out.append(test)
        return out

    def acted(self, kind: type, place: Place, at: ast.stmt) -> Block:
        if place.own and kind is ast.Return:
            return [syntax.returned(None if self.bare else syntax.load(VALUE), at)]
        if place.own and place.loop is not None and place.loop.native:
            return [syntax.at(kind(), at)]
        return self.leave(self.flag(kind, place), place, at)

    def new_loop(self, native: bool) -> Loop:
        self.loops += 1
        return Loop(f"{syntax.HIDDEN}broke{self.loops}", f"{syntax.HIDDEN}continued{self.loops}", native)

    def loop(self, statement: ast.For | ast.While, kinds: frozenset[type], place: Place) -> Block:
        loop = self.new_loop(native=False)
        inner = exits.kinds_of(statement.body)
        outside = self.apart(place) if ast.Return in inner and place.direct else place
        out: Block = []
        stop = [flag for flag, kind in ((loop.broke, ast.Break), (outside.returned, ast.Return)) if kind in inner]
        self.read.update(stop)
        if ast.Break in inner:
            out.append(syntax.assign(loop.broke, syntax.false(), statement))
        orelse, statement.orelse = statement.orelse, []
        body = self.block(statement.body, Place(own=False, direct=False, loop=loop, returned=outside.returned))
        if loop.continued in self.read:
            body = [syntax.assign(loop.continued, syntax.false(), statement), *body]
        statement.body = body or [ast.Pass()]
        statement.stop = stop  # type: ignore[union-attr]
        out += self.dispatched(statement, frozenset(inner & {ast.Return}), place, outside)
        if not orelse:
            return out
        if not stop:
            return out + self.block(orelse, place)
        tests: list[ast.expr] = [syntax.load(flag) for flag in stop if flag == loop.broke or not place.direct]
        if not tests:
            return out + self.block(orelse, place)
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        otherwise = syntax.at(ast.If(syntax.at(ast.UnaryOp(ast.Not(), test), statement), orelse, []), orelse[0])
        return out + self.branch(otherwise, exits.jump_kinds(otherwise), place)

    def kept_loop(self, statement: ast.For | ast.While | ast.AsyncFor, place: Place) -> Block:
        statement.kept = True  # type: ignore[union-attr]
        inside = replace(place, direct=True, loop=self.new_loop(native=True))
        statement.body = self.block(statement.body, inside) or [ast.Pass()]
        statement.orelse = self.block(statement.orelse, replace(place, direct=True))
        return [statement]

    def kept_if(self, statement: ast.If, place: Place) -> Block:
        statement.kept = True  # type: ignore[attr-defined]
        inside = replace(place, direct=True)
        statement.body = self.block(statement.body, inside) or [ast.Pass()]
        statement.orelse = self.block(statement.orelse, inside)
        return [statement]

    def with_(self, statement: ast.With | ast.AsyncWith, kinds: frozenset[type], place: Place) -> Block:
        if self.stays(statement):
            place = replace(place, direct=True)
        if kinds and len(statement.items) > 1:      # the exit of one may raise what another swallows
            inner = syntax.at(type(statement)(statement.items[1:], statement.body, None), statement)
            statement.items, statement.body = statement.items[:1], [inner]
        undone = not place.direct and kinds and any(map(exits.undone, statement.body))
        statement.body = self.block(statement.body, place) or [ast.Pass()]
        if not undone:
            return [statement]
        done = self.new_loop(native=False).broke.replace("broke", "done")
        statement.body.append(syntax.assign(done, syntax.true(), statement))
        self.read.add(done)
        clear = [syntax.assign(self.flag(kind, place), syntax.false(), statement) for kind in kinds]
        return [syntax.assign(done, syntax.false(), statement), statement,
                syntax.at(ast.If(ast.UnaryOp(ast.Not(), syntax.load(done)), clear, []), statement)]

    def try_(self, statement: ast.Try, kinds: frozenset[type], place: Place) -> Block:
        if self.stays(statement):
            place = replace(place, direct=True)
        inner = exits.kinds_of(statement.body)
        undone = not place.direct and any(map(exits.undone, statement.body))
        statement.body = self.block(statement.body, place) or [ast.Pass()]
        if statement.orelse and inner and not place.direct:
            statement.orelse = [self.guard(inner, statement.orelse, place)]
        else:
            statement.orelse = self.block(statement.orelse, place)
        for handler in statement.handlers:
            clear = [syntax.assign(self.flag(kind, place), syntax.false(), handler) for kind in inner] if undone else []
            handler.body = clear + self.block(handler.body, place) or [ast.Pass()]
        statement.finalbody = self.block(statement.finalbody, place)
        return [statement]


class _Unread(ast.NodeTransformer):
    """Takes away flags that nothing reads."""

    def __init__(self, read: set[str]) -> None:
        self.read = read

    def block(self, statements: Block) -> Block:
        out: Block = []
        for statement in statements:
            kept = self.visit(statement)
            if kept is not None:
                out.append(kept)
        return out or ([syntax.at(ast.Pass(), statements[0])] if statements else [])

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        target = node.targets[0]
        flags = isinstance(target, ast.Name) and target.id.startswith(FLAGS)
        return None if flags and target.id not in self.read else node  # type: ignore[attr-defined]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.expr, *scope.SCOPES)):
            return node
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, self.block(block))
        for child in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.generic_visit(child)
        return node
