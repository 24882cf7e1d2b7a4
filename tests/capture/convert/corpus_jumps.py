"""return, break and continue anywhere; loops with else; try, with and finally around them."""
# ruff: noqa
import contextlib

from tests.capture.convert.harness import case, say


@case((1,), (0,))
def if_else(x):
    if x: y = 1
    else: y = 2
    return y

@case((-1,), (0,), (1,), (7,))
def elif_chain(x):
    if x < 0: return "neg"
    elif x == 0: return "zero"
    elif x == 1: r = "one"
    else: r = "many"
    return r + "!"

@case((1,), (0,))
def no_return(x):
    if x: say("x")

@case((1,), (0,))
def bare_return(x):
    if x: return
    say("after")

@case((1,), (0,))
def return_one_branch_else_falls(x):
    if x:
        return 5
    y = 3
    if y > x: y += 1
    return y

@case((0, 0), (1, 0), (0, 1), (1, 1))
def nested_return(a, b):
    if a:
        if b: return "ab"
        say("a only")
    elif b:
        return "b"
    return "end"

@case((0,), (3,), (10,))
def while_plain(n):
    i = 0
    while i < n:
        i += 1
    return i

@case((0,), (3,), (10,))
def while_else(n):
    i = 0
    while i < n:
        i += 1
        if i == 5: break
    else:
        return "else", i
    return "broke", i

@case((0,), (3,), (10,))
def while_true(n):
    i = 0
    while True:
        i += 1
        if i > n: break
    return i

@case((0,), (3,), (10,))
def while_true_return(n):
    i = 0
    while True:
        i += 1
        if i > n: return i

@case((0,), (4,))
def while_true_return_break(n):
    i = 0
    while True:
        i += 1
        if i > n: return i * 2
        if i > 2: break
    else:
        i = 100
    return i - 1

@case(([],), ([1, 2, 3],), ([5, 1],))
def for_continue(xs):
    out = []
    for x in xs:
        if x == 2: continue
        out.append(x)
    return out

@case(([],), ([1, 2, 3],), ([5, 1],), ([1, 5, 2],))
def for_break_else(xs):
    for x in xs:
        if x == 5:
            say("five")
            break
        say(x)
    else:
        say("none")
    return "done"

@case(([],), ([1, 2, 3],), ([5, 1],))
def for_else_return(xs):
    for x in xs:
        if x == 2: return "two"
    else:
        return "else"

@case(([],), ([1, 2, 3],), ([5, 1],))
def for_else_plain(xs):
    for x in xs: say(x)
    else: say("always")

@case(([[1, 2], [3]], 3), ([[1, 2], [3]], 9), ([], 1))
def nested_loops_return(rows, k):
    for row in rows:
        for v in row:
            if v == k: return ("found", row, v)
        say(row)
    return "not"

@case(([[1, 2], [3, 4]],), ([[2], [4, 5]],), ([],))
def nested_break_continue(rows):
    total = 0
    for row in rows:
        for v in row:
            if v == 1: continue
            if v == 4: break
            total += v
        else:
            total += 100
            continue
        total += 1000
    return total, row if rows else None

@case((0,), (1,), (2,), (3,))
def deep(n):
    for i in range(3):
        while True:
            if i == n:
                if n == 1: return "one"
                elif n == 2: break
                else: say("other")
            for j in range(2):
                if j == i: break
            else:
                say(("else", i, j))
                break
            if i < 2: break
            return ("deep", i, j)
        say(i)
    return "end"

@case((0,), (1,))
def loop_variable_after(n):
    for i in range(n): pass
    return i

@case((0,), (1,))
def maybe_unbound(x):
    if x: y = 1
    return y

@case((0,), (1,))
def maybe_unbound_in_branch(x):
    if x: y = 1
    if True:
        say("reads")
        z = y + 1
    return z

@case((0,), (1,))
def unbound_augmented(x):
    if x: y = 1
    if not x or x:
        y += 1
    return y

@case((0,), (1,))
def deleted(x):
    y = 3
    if x: del y
    if x < 5:
        say(y)
    return y

@case((0,), (1,))
def deleted_twice(x):
    y = 3
    if x:
        del y
        del y
    return 1

@case((0,), (1,))
def unbound_nested_function(x):
    def inner(): return y
    if x: y = 2
    return inner()

@case((0,), (1,), (2,))
def dead_code(x):
    if x:
        return x
        y = 1
    else:
        raise ValueError("zero")
    return y

@case((0,), (1,), (2,), (3,))
def try_return(x):
    try:
        if x == 0: return "zero"
        if x == 1: raise ValueError("one")
        y = 10 // (x - 2)
    except ValueError as e:
        return "caught " + str(e)
    except ZeroDivisionError:
        y = -1
    else:
        say("else")
        if x == 3: return "three"
    finally:
        say("finally")
    return y

@case((0,), (1,), (2,))
def try_in_loop(n):
    out = []
    for i in range(4):
        try:
            if i == n: continue
            if i == n + 1: break
            out.append(i)
        finally:
            out.append("f")
        out.append("end")
    else:
        out.append("else")
    return out

@case((0,), (1,), (2,))
def finally_return(x):
    try:
        if x == 0: return "try"
        if x == 1: raise KeyError("k")
    finally:
        return "finally"

@case((0,), (1,), (2,))
def finally_conditional_return(x):
    try:
        if x == 0: return "try"
        raise KeyError("k")
    finally:
        if x == 1: return "finally"

@case((0,), (1,), (2,), (3,))
def finally_break_in_loop(x):
    for i in range(3):
        try:
            if i == x: return "try"
            if i + 1 == x: raise KeyError(i)
        finally:
            if x == 0: break
            if x == 2: continue
        say(i)
    return "after", i

@case((0,), (1,), (2,), (3,))
def finally_in_branch(x):
    out = []
    if x < 10:
        while True:
            try:
                if x == 0: return "try"
                if x == 1: break
            finally:
                out.append("f")
                if x == 2: return "two"
                if x == 0: break
            out.append("loop")
            if len(out) > 5: break
        out.append("after")
    return out

class Raising:
    def __enter__(self): return self
    def __exit__(self, *a): raise LookupError("exit")

@case((0,), (1,))
def exit_undoes_return(x):
    try:
        with Raising():
            if x: return "lost"
    except LookupError:
        say("caught")
    return "kept"

@case((0,), (1,))
def swallowed_undoes_return(x):
    with contextlib.suppress(LookupError):
        with Raising():
            if x: return "lost"
        say("not here")
    return "kept"

@case((0,), (1,))
def two_items_undo(x):
    for i in range(2):
        with contextlib.suppress(LookupError), Raising():
            if x: break
        say(i)
    return "kept", i

@case((0,), (1,))
def finally_raise_undoes(x):
    try:
        try:
            if x: return "lost"
        finally:
            raise LookupError("f")
    except LookupError as e:
        say(str(e))
    return "kept"

@case((0,), (1,))
def with_return(x):
    with contextlib.suppress(ValueError) as c:
        if x: return say("in"), c
        raise ValueError("v")
    return "swallowed"

@case((0,), (1,), (2,))
def reraise(x):
    try:
        raise ValueError("a")
    except ValueError as e:
        if x == 1: raise
        if x == 2: raise KeyError("b") from e
    return "no"

@case((0,), (1,))
def nested_try(x):
    try:
        try:
            if x: raise ValueError("inner")
            return 1
        except KeyError:
            say("never")
        finally:
            say("first")
    except ValueError:
        return 2
    finally:
        say("second")

@case((0,), (1,), (2,))
def except_name_unbound(x):
    e = 5
    try:
        if x: raise ValueError("v")
    except ValueError as e:
        say(str(e))
    if x == 2: e = 1
    return e

@case((3,), (0,))
def raise_in_branch(x):
    if x:
        y = [1, 2]
        return y[x]
    raise RuntimeError(
        "multi-line %s" % x)

@case((3,), (0,))
def raise_in_loop(x):
    for i in range(5):
        if i == x:
            return (1 /
                    (i - x))
    return None

@case(([(1, 2), (3, 4)],), ([(1, 2), 3],), ([(1, 2, 3)],))
def unpacking_target(pairs):
    total = 0
    for a, b in pairs:
        total += a * b
    return total, a, b

@case(([[1, 2, 3], [4]],), ([[]],))
def star_target(rows):
    out = []
    for first, *rest in rows:
        out.append((first, rest))
    return out

@case(({"a": 1},),)
def subscript_target(d):
    for d["k"] in range(3):
        if d["k"] == 1: break
    return d

@case((5,), ("x",), (None,))
def not_iterable(x):
    for y in x:
        say(y)

@case((0,), (1,), (2,), (3,))
def kept_by_locals(x):
    for i in range(3):
        if i == x:
            return sorted(locals()), i
        if x == 3: break
    return "end", i

@case((0,), (1,), (2,))
def endless_with_try(x):
    n = 0
    while True:
        try:
            n += 1
            if n > x: return n
            if n == 1: continue
            raise ValueError(n)
        except ValueError:
            break
        finally:
            say(n)
    return "out"

@case((0,), (1,))
def recursion(n):
    return 1 if n <= 0 else recursion_target(n)

def recursion_target(n):
    return n * 2

@case((0,), (1,), (2,), (3,), (4,))
def many_returns(x):
    if x == 0: return "a"
    if x == 1: return "b"
    for i in range(x):
        if i == 2:
            if x == 3: return "c"
            break
    if x == 2: return "d"
    return "e"

@case((0,), (1,), (2,))
def return_in_both_then_dead(x):
    if x:
        if x == 1: return 1
        else: return 2
    else:
        return 3
    say("dead")

@case((0,), (2,))
def pass_only(x):
    if x: pass
    else: pass
    for i in range(x): pass
    while x > 5: pass
