"""Functions: closures, nested and decorated functions, methods, super, generators, global and nonlocal names, classes."""
# ruff: noqa
import asyncio
import functools
import sys

from tests.capture.convert.harness import case, converted, say

COUNT = 0


@case((1,), (0,))
def nested_function(x):
    def inner(a, b=x, *, c=3):
        "doc"
        if a: return a + b + c
        return inner
    return inner(1), inner(0), inner

@case((1,), (0,))
def nonlocal_counter(x):
    n = 0
    def up():
        nonlocal n
        if x: n += 1
        else: n -= 1
        return n
    up(); up()
    if n > 0: n *= 10
    return n

@case((1,), (0,))
def global_counter(x):
    global COUNT
    COUNT = 0
    if x: COUNT += 5
    else:
        for COUNT in range(3): pass
    def inner():
        global COUNT
        if x: COUNT += 1
    inner()
    return COUNT

@case((1,), (0,))
def global_in_branch(x):
    if x:
        global FRESH
        FRESH = [1]
    say(FRESH if x else "none")
    if x: del FRESH
    return "FRESH" in globals()

@case((3,),)
def closures_share_cells(n):
    fs = []
    for i in range(n):
        def f(): return i
        fs.append(f)
    gs = [lambda: i for i in range(n)]
    return [f() for f in fs], [g() for g in gs]

def outer(k):
    z = [k]
    def free(x):
        nonlocal k
        if x > k: k = x
        if x: return k, z
        del z[:]
        return z
    return free

FREE = outer(3)
case((1,), (5,), (0,))(FREE)

def outer_unbound():
    def f(x):
        if x:
            return later
        return 0
    return f
    later = 1

case((1,), (0,))(outer_unbound())

class Base:
    __hidden = "base"
    def __init__(self, n): self.n = n; self.__p = n
    def go(self, x): return ("base", x, self.n)
    @classmethod
    def make(cls, x): return cls.__name__, x
    @property
    def prop(self): return self.__p

class Child(Base):
    __own = 7
    def go(self, x):
        if x:
            for i in range(2):
                if i: return super().go(x), self.__own, __class__.__name__
        return super(Child, self).go(x)
    @classmethod
    def make(cls, x):
        return super().make(x) if x else cls.__own
    @property
    def prop(self):
        return (super().prop, "child") if self.n else super().prop
    def nested(self, x):
        def inner(me, y):
            return super(Child, me).go(y) if y else me.__own
        f = lambda y: super(Child, self).go(y) if y else self.__own
        return [f(v) for v in (x, 0)], inner(self, 0), {self.__own for _ in range(1)}
    def rebound(self, x):
        if x: self = Child(50)
        return super().go(x) if x else super().go(0)
    def dunder(self, __a=1):
        __b = __a
        if __a: __b += 1
        return __b, self.__dict__
    def inner_class(self, x):
        class __Private:
            __v = x
            def get(self): return self.__v if x else None
        return __Private().get(), __Private.__name__

    def class_with_super(self, x):
        if x:
            class D(dict):
                def __init__(self, w):
                    super().__init__(w=w)
            return dict(D(x))

CHILD = Child(1)
for method, calls in {"go": [(1,), (0,)], "nested": [(1,), (0,)], "rebound": [(1,), (0,)], "dunder": [(), (0,), (5,)],
                      "inner_class": [(1,), (0,)], "class_with_super": [(1,), (0,)]}.items():
    case(*[(CHILD, *call) for call in calls])(Child.__dict__[method])
case((Child, 1), (Child, 0))(Child.__dict__["make"].__func__)
case((Child(0),), (Child(2),))(Child.__dict__["prop"].fget)

def deco(f):
    @functools.wraps(f)
    def wrapper(*a, **k):
        if say("wrapped") and a: return f(*a, **k)
        return "no args"
    return wrapper

@deco
@deco
def decorated(x):
    return 1 if x else 2

case((1,), (0,))(decorated.__wrapped__.__wrapped__)
case((1,), ())(decorated)

ADD, PICK = (lambda a: a + 1 if a else 0), (lambda a: a and a * 2 or "z")
case((1,), (0,))(ADD)
case((1,), (0,))(PICK)
TWO = [lambda x: lambda y: x or y, lambda x: (lambda y: y and x)]
case((1,), (0,))(TWO[0](0))
case((1,), (0,))(TWO[1](5))
DEFAULTS = lambda x, y=(1, 2), *a, z={"k": 1}, **k: (x if x else y, a, z, k)
case((1,), (0,), (0, 1, 2))(DEFAULTS)

@case((3,), (0,))
def generator(n):
    for i in range(n):
        if i == 1: say("one")
        x = yield i if i != 2 else "two"
        if x: return
    return n

@case((3,), (1,), (0,))
def generator_jumps(n):
    for i in range(5):
        if i == n: return
        if i == 0: continue
        try:
            for j in range(3):
                if j == 1: break
                say((i, j))
            yield i
            if n == 3 and i == 2: break
        finally:
            say("f")
    else:
        yield "else"
    yield "end"

@case((3,), (0,))
def generator_empty(n):
    return n
    yield

@case((3,), (0,))
def generator_from(n):
    got = yield from generator(n)
    if got: yield got

@case((2,), (0,))
def inner_generator(n):
    def g():
        try:
            while True:
                v = yield
                if v is None: say("none")
                elif v > n: return "big"
        except ValueError:
            yield "caught"
    it = g()
    next(it)
    out = []
    for v in (1, 5):
        try: out.append(it.send(v))
        except StopIteration as stop: return out, stop.value
    return out

@case((2,), (0,))
def coroutine(n):
    async def work(k):
        total = 0
        for i in range(k):
            if i: await asyncio.sleep(0)
            else: total += 1
        async def agen():
            for i in range(k):
                if i == 1: return
                yield i
        total += sum([v async for v in agen()])
        async for v in agen():
            if v: break
        return total if total else "none"
    return asyncio.run(work(n))

@case((1,), (0,))
def class_in_function(x):
    if x:
        class A:
            v = [i for i in range(3) if i]
            def f(self): return "f" if x else "g"
            @staticmethod
            def g(): return x and A
        return A().f(), A.v, A.__qualname__, A.f.__qualname__, A.g().__name__
    class B: pass
    return B

@case((1,), (0,))
def decorated_inside(x):
    @deco
    def f(y=x):
        return y if y else "none"
    return f(1), f(), f(0)

@case((2, 3), (0, 3), (0, 0))
def arguments(a, b, /, c=3, *rest, d=4, **more):
    if a: c, d = d, c
    return a, b, c, d, rest, more

@case((1,), (0,))
def locals_visible(x):
    a = [1]
    for i in range(2): pass
    if x: b = 2
    names = locals()
    return sorted(names), sorted(vars()), sorted(dir()), eval("a")

@case((1,), (0,))
def locals_in_branch(x):
    y = 5
    if x:
        return sorted(locals())
    return sorted(locals().items())

@case((5,), (0,))
def factorial(n):
    "Recursive."
    def fact(k):
        if k <= 1: return 1
        return k * fact(k - 1)
    return fact(n), factorial.__doc__

@case((1,), (0,))
def parameter_reassigned(x):
    if x: x = [x]
    while not x: x = [0]
    return x

@case((1,), (0,))
def exception_in_nested(x):
    def inner(y):
        if y:
            return [][y]
        return [1 / v for v in (1, y)]
    return inner(x)

@case((1,), (0,))
def exception_in_lambda(x):
    f = lambda v: (
        1 / 0 if v
        else [][3])
    return f(x)

@case((2,),)
def scope_of_comprehension(x):
    y = 10
    r = [(x, y) for x in range(2) for y in range(2) if x != y]
    s = [[x + z for z in range(x)] for x in range(3)]
    return x, y, r, s, [lambda: x for x in range(2)][0]()

@case((1,), (0,))
def finalized_closure(x):
    out = []
    try:
        def f(v):
            try:
                if v: return out.append(v)
            finally:
                out.append("f")
        f(x); f(0)
    finally:
        if x: out.append("x")
    return out

@case((1,), (0,))
def dead_declaration(x):
    def inner():
        nonlocal y
        y = x
    return x
    y = 1

@case((1,), (0,))
def lambda_in_comprehension(x):
    return [(lambda v=v: v).__qualname__ for v in [x]], list((lambda: v).__qualname__ for v in [x])
