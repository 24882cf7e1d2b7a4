"""Expressions: short circuits, comparisons, comprehensions, walrus, builtins, assignments."""
# ruff: noqa
from tests.capture.convert.harness import case, say


class Odd:
    """Says what is asked of it."""
    def __init__(self, n): self.n = n
    def __bool__(self): say(("bool", self.n)); return bool(self.n)
    def __eq__(self, o): say(("eq", self.n)); return Odd(self.n == getattr(o, "n", o))
    def __ne__(self, o): say(("ne", self.n)); return Odd(self.n != getattr(o, "n", o))
    def __lt__(self, o): say(("lt", self.n)); return Odd(self.n < getattr(o, "n", o))
    def __contains__(self, v): say(("contains", v)); return Odd(v == self.n)
    def __hash__(self): return hash(self.n)
    def __repr__(self): return f"Odd({self.n})"

class Unsure:
    def __bool__(self): raise TypeError("unsure")

@case((0, 1), (1, 0), (1, 1), (0, 0), ("", []))
def and_or(a, b):
    return (a and b, a or b, not a, a and not b or b and not a, say(1, a) and say(2, b), say(3, a) or say(4, b))

@case((Odd(0), Odd(1)), (Odd(1), Odd(0)))
def and_or_objects(a, b):
    if a and b or not a and b: say("if")
    while not (a or b): break
    return a and b, a or b, not a, "t" if a and (a or b) else "f"

@case((Odd(1), Odd(2), Odd(3)), (Odd(3), Odd(2), Odd(3)))
def chained_objects(a, b, c):
    if a < b < c: say("if")
    assert a < b < c or True
    return "t" if a == b == c else "f"

@case((Odd(1), Odd(2), Odd(3)), (Odd(3), Odd(2), Odd(3)), (1, 2, 3), (1, 5, 3), (2, 2, 2))
def chained(a, b, c):
    return a < b < c, say(1, a) < say(2, b) < say(3, c), 0 < 1 < b

@case((1, 2, 3, 4), (1, 3, 2, 4), (4, 3, 2, 1))
def chained_long(a, b, c, d):
    return a < say("b", b) < say("c", c) <= say("d", d), a == b == c, a in [b, 1] in [[1]]

@case((1,), ("x",))
def chained_error(a):
    return 0 < a < 10 < 20

@case((1,), (0,), (Odd(0),), (Odd(1),))
def ternary(x):
    return say("yes") if x else say("no")

@case((1, 0), (0, 1), (0, 0))
def ternary_nested(a, b):
    return 1 if a else 2 if b else 3

@case((1, [1, 2]), (3, [1, 2]), (1, 5), ("a", "abc"), (1, Odd(1)), (2, Odd(1)))
def membership(x, xs):
    return x in xs, x not in xs, not x in xs

@case((1, 1), (1, 2), (Odd(1), 1), ([1], [1]), (float("nan"), 1))
def equality(a, b):
    return a == b, a != b, not a == b, a is b, a is not b

@case((Unsure(),),)
def unsure_if(x):
    y = 1
    if x:
        y = 2
    return y

@case((Unsure(),),)
def unsure_and(x):
    return 1 and x and 2

@case((Unsure(),),)
def unsure_while(x):
    while x:
        pass

@case((1,), (0,))
def asserts(x):
    assert x, say("message")
    return "fine"

@case((1,), (0,))
def asserts_plain(x):
    assert x
    assert x > 0, ("a", "tuple")
    return "fine"

@case((0,), (2,))
def asserts_bad_message(x):
    assert x, 1 / x
    return x

@case(([1, 2, 3],), ([],), (5,))
def listcomp(xs):
    return [x * 2 for x in xs]

@case(([1, 2, 3],), ([],))
def listcomp_filter(xs):
    x = "outer"
    return [x * 2 for x in xs if x % 2 if say(x) > 1 or True], x

@case(([[1, 2], [3]],), ([[0], []],), ([1],))
def listcomp_nested(rows):
    return [(r, v) for r in rows for v in r if v], [[v + 1 for v in r] for r in rows]

@case(([1, 2, 2],),)
def setcomp_dictcomp(xs):
    return {x % 2 for x in xs}, {say(("k", x)): say(("v", x)) for x in xs}, {k: v for k, v in enumerate(xs) if v > 1}

@case(([1, "a"],), ([0],))
def comp_error(xs):
    return [
        1 / x
        for x in xs
    ]

@case(([1, 2, 3],), ([],), ([0, 0],))
def genexps(xs):
    return (any(say(x) > 1 for x in xs), all(say(x) > 1 for x in xs), sum(x for x in xs if x > 1), max((x for x in xs), default=None),
            list(x for x in xs), tuple(-x for x in xs), sorted((-x for x in xs), key=abs), set(x for x in xs), dict((x, 1) for x in xs))

@case(([[1, 0], [2]],), ([[0]],), ([],))
def any_nested(rows):
    return any(v > 1 for r in rows for v in r if say(v) or v == 0), all(v for r in rows for v in r)

@case(([1, 2, 3],),)
def genexp_lazy(xs):
    g = (say(x) for x in xs)
    first = next(g)
    xs.append(4)
    return first, list(g), next(iter(y for y in xs))

@case((5,),)
def genexp_not_iterable(x):
    g = (y for y in x)
    return "late"

@case(([1, 2, 3],),)
def genexp_mixed(xs):
    return list(zip((x for x in xs), (say(y) for y in xs if y > 1))), ",".join(str(x) for x in xs)

@case((3,), (0,))
def walrus(n):
    if (m := n * 2) > 3: return m
    return m, n

@case((3,), (0,))
def walrus_lazy(n):
    r = n and (m := n + 1)
    return r, m

@case((3,), (0,))
def walrus_or(n):
    r = n or (m := "m") or say("never")
    s = (p := 1) if n else (q := 2)
    if n: return r, s, p
    return r, s, m, q

@case((0,), (3,), (20,))
def walrus_chain(n):
    ok = 1 < (a := say(n)) < (b := say(10))
    return ok, a, b

@case(([1, 5, 2],), ([],), ([9, 9],))
def walrus_while(xs):
    out = []
    while xs and (x := xs.pop()) < 9:
        out.append(x)
    return out, xs

@case(([1, 5, 2],), ([0],))
def walrus_any(xs):
    if any((found := x) > 3 for x in xs): return found
    return "none", found

@case(([1, 5, 2],),)
def walrus_listcomp(xs):
    total = 0
    partial = [total := total + x for x in xs]
    return partial, total

@case(([1, 5, 2],), ([],))
def walrus_filter(xs):
    r = [y for x in xs if (y := x * 2) > 2]
    return r, y

@case((2,),)
def walrus_lambda(n):
    f = lambda x: (y := x) and y + n or (z := 3)
    return f(0), f(1)

@case((2,),)
def lambdas(n):
    fs = [lambda x, i=i: x + i + n if x else -1 for i in range(3)]
    key = lambda v, *a, k=n, **kw: (v and k) or kw
    return [f(1) for f in fs], [f(0) for f in fs], key(0, z=1), key(1), key

@case(([3, 1, 2],),)
def lambda_comp(xs):
    f = lambda ys=xs, *, k=len(xs): [y for y in ys if y > 1] + [k]
    return f(), f([5], k=0), f

@case((2,), (0,))
def builtins_called(n):
    return (int("3") + n, float(n), bool(n), len([n] * n), list(range(n)), min(n, 1), max([n, 5]), sum([n, n]), sorted([3, n]),
            list(enumerate("ab")), list(zip("ab", [n])), abs(-n), round(2.567, n), isinstance(n, int), divmod(7, 3), str(n), repr(n),
            list(map(lambda x: x + n, [1])), list(filter(None, [0, n])), pow(n, 2), format(n, "03d"), list(reversed([1, n])), hash(n))

@case((2,),)
def builtins_shadowed(n):
    len = lambda x: ("mine", x)
    def range(k): return [k, k]
    return len([1]), [i for i in range(n)], max(range(n))

@case((2,),)
def missing_name(n):
    if n: return lenn([1])

@case(([1, 2, 3, 4],), ([1],))
def star_assignment(xs):
    if xs:
        first, *middle = xs
        *start, last = xs
    a, (b, *c) = 1, (2, 3)
    return first, middle, start, last, a, b, c

@case(([1, 2],),)
def augmented(xs):
    ys = xs
    if xs:
        xs += [3]
        xs[0] += 10
        xs[say(1)] *= say(2)
    n = 5
    while n > 1: n //= 2
    return xs, ys is xs, n

@case((1,), (0,))
def annotated(x):
    y: int
    z: "nonsense" = 3
    if x:
        y: undefined_name = 4
        z: int = 9
        return y, z
    return z, y

@case((1,), (0,))
def fstrings(x):
    y = "a" if x else "b"
    return f"{y}-{x!r:>5}-{'t' if x else 'f'}-{[i for i in range(2) if i]}"

@case((1,), (0,))
def multiple_targets(x):
    if x: a = b = [1]
    else: a, b = 2, 3
    return a, b, a is b

@case(({"a": 1, "b": 2},),)
def dict_loop(d):
    out = {}
    for k, v in d.items():
        if v > 1: out[k] = v
        elif k not in out: out |= {k: -v}
    if "a" in d: del d["a"]
    return out, d

@case((1,), (0,))
def order(x):
    return [say(1), say(2, x) and say(3), *[say(4)], say(5) if say(6, x) else say(7), {say(8): say(9)}, say(10)[say(11) - 12:] if x > 5 else say(12)]

@case((0,), (2,))
def imports(x):
    if x:
        import os.path as p
        from math import floor, ceil as up
        return p.basename("a/b"), floor(2.5), up(2.5)
    import os.path
    return os.path.basename("c/d")

@case((1,), (0,))
def unbound_in_lambda(x):
    f = lambda v: ((v and later) or 2) + (later := v)
    return f(x)

@case(([1],), ([],))
def unbound_in_comprehension(xs):
    return [j for i in xs for j in (i and j,)]

@case((1,), (0,))
def assert_binds(x):
    if x: y = 1
    if x < 5:
        assert x, (z := y)
        return y
