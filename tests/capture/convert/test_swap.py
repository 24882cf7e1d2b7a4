"""Code objects put in the place of others, and taken back."""

import functools
import gc
import threading
import types
import weakref

import pytest

from monograph.capture.convert import compile as compiler
from monograph.capture.convert.operators import Operators, entered
from monograph.capture.convert.swap import Swap, enclosing, swapped
from monograph.capture.convert.syntax import Unconvertible


class Counting(Operators):
    """Counts decisions."""

    def __init__(self):
        self.decided = 0

    def if_(self, test, then, otherwise, state):
        self.decided += 1
        super().if_(test, then, otherwise, state)


def plain(x):
    if x:
        return 1
    return 2


def decorate(f):
    @functools.wraps(f)
    def wrapper(x):
        if x > 10:
            return "large"
        return f(x)
    return wrapper


@decorate
def decorated(x):
    if x:
        return "yes"
    return "no"


def make(k):
    def made(x):
        if x:
            return k
        return -k
    return made


def nested(x):
    def inner(y):
        return [z for z in range(y) if z]
    pick = lambda y: 1 if y else 0  # noqa: E731
    return inner(x), pick(x)


class Model:
    def forward(self, x):
        if x:
            return self
        return None


def decisions(function, *arguments):
    counting = Counting()
    with entered(counting):
        result = function(*arguments)
    return counting.decided, result


def test_swapped_inside_and_restored_outside():
    before = plain.__code__
    with Swap() as swap:
        assert swap.install(before, compiler.convert(before))
        assert plain.__code__ is not before
        assert decisions(plain, 0) == (1, 2)
    assert plain.__code__ is before
    assert decisions(plain, 0) == (0, 2)


def test_restored_after_an_exception():
    before = plain.__code__
    with pytest.raises(ZeroDivisionError), swapped([(before, compiler.convert(before))]):
        assert plain.__code__ is not before
        1 / 0  # noqa: B018
    assert plain.__code__ is before


def test_every_closure_of_one_code_object():
    first, second = make(1), make(2)
    before, maker = first.__code__, make.__code__
    with Swap() as swap:
        assert swap.install(before, compiler.convert(before))
        assert make.__code__ is not maker
        third = make(3)
        assert decisions(third, 1) == (1, 3)
        assert decisions(second, 0) == (1, -2)
        assert first.__closure__[0].cell_contents == 1
    assert first.__code__ is before and second.__code__ is before and third.__code__ is before
    assert decisions(third, 1) == (0, 3)
    assert make(4).__code__ is before


def test_several_at_once():
    codes = [plain.__code__, Model.forward.__code__, make(1).__code__]
    missing = compile("def gone(x):\n    return x", "gone", "exec").co_consts[0]
    with Swap() as swap:
        found = swap.install_all([*((code, compiler.convert(code)) for code in codes), (missing, missing)])
        assert found == set(map(id, codes))
        assert decisions(plain, 0) == (1, 2)
    assert [plain.__code__, Model.forward.__code__] == codes[:2]


def test_what_is_made_inside_is_restored_also_when_it_is_old():
    before = make.__code__
    with swapped([(before, compiler.convert(before))]):
        made = make(5)
        gc.collect()
        young = make(6)
    assert made.__code__ is young.__code__ is make(1).__code__


def test_what_was_exchanged_is_not_kept():
    with Swap() as swap:
        made = make(1)
        swap.install(made.__code__, compiler.convert(made.__code__))
        gone = weakref.ref(made)
        del made
        assert gone() is None


def test_functions_made_by_a_converted_function_get_their_source_back():
    before = make.__code__
    with swapped([(before, compiler.convert(before))]):
        made = make(5)
        assert decisions(made, 1) == (1, 5)
    assert decisions(made, 1) == (0, 5)
    assert made.__code__ is make(1).__code__


def test_wrapper_and_wrapped_are_different():
    wrapper, inner = decorated.__code__, decorated.__wrapped__.__code__
    with swapped([(inner, compiler.convert(inner))]):
        assert decisions(decorated, 1) == (1, "yes")
        with swapped([(wrapper, compiler.convert(wrapper))]):
            assert decisions(decorated, 1) == (2, "yes")
        assert decisions(decorated, 1) == (1, "yes")
    assert decorated.__code__ is wrapper and decorated.__wrapped__.__code__ is inner


def test_one_function_twice():
    code = make.__code__
    inner = make(0).__code__
    with Swap() as swap:
        swap.install(inner, compiler.convert(inner))
        again = make.__code__
        assert again is not code
        swap.install(again, compiler.convert(again))
        assert decisions(make(7), 1) == (1, 7)
    assert make.__code__ is code and make(0).__code__ is inner


def test_methods_of_every_instance():
    model = Model()
    bound = model.forward
    code = Model.forward.__code__
    with swapped([(code, compiler.convert(code))]):
        assert decisions(bound, 1) == (1, model)
        assert decisions(Model().forward, 0) == (1, None)
    assert Model.forward.__code__ is code


def test_frames_in_flight_keep_their_code():
    def steps(n):
        for i in range(n):
            if i:
                yield i
    running = steps(3)
    assert next(running) == 1
    code = steps.__code__
    with swapped([(code, compiler.convert(code))]):
        assert list(running) == [2]
        assert list(steps(3)) == [1, 2]
    assert steps.__code__ is code


def test_threads_run_the_functions_meanwhile():
    stop, wrong = threading.Event(), []

    def work():
        while not stop.is_set():
            if plain(1) != 1 or plain(0) != 2 or make(3)(1) != 3 or nested(3) != ([1, 2], 1):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            codes = (plain.__code__, make.__code__, nested.__code__)
            with swapped([(code, compiler.convert(code)) for code in codes]):
                assert decisions(plain, 1) == (1, 1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_only_the_thread_that_entered_them_calls_its_operators():
    counting, seen = Counting(), []
    with swapped([(plain.__code__, compiler.convert(plain.__code__))]), entered(counting):
        thread = threading.Thread(target=lambda: seen.append(plain(1)))
        thread.start()
        thread.join()
    assert seen == [1] and counting.decided == 0


def test_enclosing():
    outer = nested.__code__
    inner, pick = (value for value in outer.co_consts if isinstance(value, types.CodeType))
    comprehension = next((value for value in inner.co_consts if isinstance(value, types.CodeType)), None)
    assert enclosing(outer) is outer and enclosing(inner) is inner and enclosing(pick) is pick
    if comprehension is not None:       # a frame of its own until 3.11
        assert enclosing(comprehension) is inner
    new = compiler.convert(outer)
    assert enclosing(new) is outer
    assert all(enclosing(value) is outer for value in new.co_consts if isinstance(value, types.CodeType))


def test_comprehension_of_no_function():
    code = compile("[x for x in y]", "<none>", "eval")
    loose = [value for value in code.co_consts if isinstance(value, types.CodeType)]
    for value in loose:
        with pytest.raises(Unconvertible, match="in no function"):
            enclosing(value)


def test_converted_functions_are_garbage_as_before():
    import weakref  # noqa: PLC0415

    class Held:
        pass

    def hold(x):
        held = Held()
        for i in range(2):
            if i and x:
                return weakref.ref(held)
        return [held for _ in [0]]
    code = hold.__code__
    gc.disable()
    try:
        with swapped([(code, compiler.convert(code))]):
            assert hold(1)() is None        # freed by reference counts alone: no cycle
    finally:
        gc.enable()
