"""match: every pattern, guards, captures, jumps."""
# ruff: noqa
from dataclasses import dataclass
from enum import Enum

from tests.capture.convert.harness import case, say


class Color(Enum):
    RED = 1
    BLUE = 2

@dataclass
class Point:
    x: object
    y: object

class Attributes:
    __match_args__ = ("a", "b")
    def __init__(self, **k): self.__dict__.update(k)
    def __getattr__(self, name): say(("getattr", name)); raise AttributeError(name)

class Equal:
    def __init__(self, n): self.n = n
    def __eq__(self, o): say(("eq", self.n, o)); return self.n == o

@case((1,), (2,), ("a",), (None,), (True,), (1.0,), (-3,), (3 + 4j,), (b"x",), (7,))
def literals(x):
    match x:
        case None: return "none"
        case True: return "true"
        case 1: r = "one"
        case "a" | b"x": r = "text"
        case -3: r = "minus"
        case 3 + 4j: r = "complex"
        case 7: pass
        case _: r = "other"
    return r

@case((Color.RED,), (Color.BLUE,), (1,))
def dotted(x):
    match x:
        case Color.RED: return "red"
        case Color.BLUE: return "blue"
    return "none"

@case(([],), ([1],), ([1, 2],), ([1, 2, 3],), ((0, 1),), ("ab",), (5,), ([5, 0],), ([5, 6, 7, 0],))
def sequences(x):
    match x:
        case []: return "empty"
        case [1]: return "one"
        case [0, y] | [y, 0]: return "pair", y
        case [first, _]: return "two", first
        case [a, *rest] if a == 1: return a, rest
        case (a, *_, z): return a, z
    return "no"

@case(({},), ({"a": 1},), ({"a": 2, "b": 3},), ({"b": 1, "c": 2},), ({"t": "x", "v": [1, 2]},), ({"t": "y", "v": 3, "w": 4},), (3,))
def mappings(x):
    match x:
        case {"a": 1}: return "a1"
        case {"a": v, "b": w}: return v, w
        case {"t": "x", "v": [p, q]}: return p, q
        case {"t": "y", **rest}: return rest
        case {"b": _}: return "b"
        case {}: return "mapping"
    return "no"

@case((Point(0, 0),), (Point(1, 0),), (Point(1, 2),), (Point(Point(1, 2), 3),), (Point([1, 2], "k"),), (3,), ("s",))
def classes(x):
    match x:
        case Point(0, 0): return "origin"
        case Point(x=a, y=0): return "axis", a
        case Point(Point(p, q), r): return p, q, r
        case Point([p, *_], y=str(s)): return p, s
        case Point(): return "point"
        case int(n): return "int", n
        case str() as s: return "str", s

@case((Attributes(a=1, b=2),), (Attributes(a=1),), (Attributes(b=1),))
def attribute_order(x):
    match x:
        case Attributes(1, 3): return "13"
        case Attributes(a=1, b=2): return "12"
        case Attributes(c=1) | Attributes(b=1): return "or"
    return "no"

@case(([Equal(1), Equal(2)],), ([Equal(1), Equal(3)],), ([Equal(5)],))
def comparison_order(x):
    match x:
        case [3, 4]: return "34"
        case [1, 3]: return "13"
        case [1, 2]: return "12"
        case [y]: return y.n

@case((1,), (5,), (20,), (-1,))
def guards(x):
    match x:
        case n if say(n) > 10: return "big"
        case n if n > 3:
            say("mid")
        case int() as n if n > 0: return "small", n
        case _: return "neg", n
    return "end", n

@case((1,), (3,))
def guard_fails_binding_stays(x):
    match [x, 2]:
        case [a, 2] if a > 2: return "first"
        case [b, 5]: return "never"
    return a

@case((1,), (2,), (3,), (4,))
def in_loop(n):
    out = []
    for i in range(5):
        match i:
            case 0: continue
            case k if k == n: break
            case 3: return "three", out
            case _: out.append(i)
        out.append("after")
    else:
        out.append("else")
    return out

@case((1,), ("x",))
def nested(x):
    match x:
        case int():
            match x + 1:
                case 2: r = "two"
                case _: r = "n"
        case str(y):
            r = y
    return r

@case((0,), (1,))
def unbound_after(x):
    match x:
        case 1: y = 2
    return y

@case(([1, 2],), ([3, 4],))
def walrus_subject(x):
    match (n := len(x)), x:
        case 2, [1, z]: return n, z
        case k, _: return k

@case((5,), (6,))
def class_error(x):
    kind = 3 if x == 5 else int
    match x:
        case kind(): return "yes"
    return "no"

@case((1,), (2,))
def capture_or(x):
    match [x, [x + 1]]:
        case [1 as a, [b]] | [a, [3 as b]]: return a, b

@case((3,), (0,))
def generator_match(n):
    for i in range(n):
        match i:
            case 0: yield "zero"
            case 1: continue
            case _: yield i
    yield "end"
