"""What converted code tells its operators: variables, which of them matter, flags, stops."""

import pytest

from monograph.capture.convert.operators import UNBOUND, Operators, entered
from tests.capture.convert.harness import converted


class Recording(Operators):
    """Keeps the states of statements, with the user's variables at entry."""

    def __init__(self):
        self.states = []
        self.stops = []

    def note(self, state):
        self.states.append(state)

    def if_(self, test, then, otherwise, state):
        self.note(state)
        super().if_(test, then, otherwise, state)

    def while_(self, test, body, state, stop):
        self.note(state)
        self.stops.append(stop)
        super().while_(test, body, state, stop)

    def for_(self, items, assign, body, state, stop):
        self.note(state)
        self.stops.append(stop)
        super().for_(items, assign, body, state, stop)


def recorded(function, *arguments):
    recording = Recording()
    with entered(recording):
        converted(function)(*arguments)
    return recording


def test_variables_are_read_and_written_where_they_live():
    seen = []

    class Exchanging(Operators):
        def if_(self, test, then, otherwise, state):
            seen.append(dict(zip(state.names, state.get())))
            then()
            seen.append(dict(zip(state.names, state.get())))
            state.set(tuple(UNBOUND if name == "z" else 7 for name in state.names))

    def f(x):
        y = 1
        if x:
            y = 2
            z = 3
        return y, z
    with entered(Exchanging()), pytest.raises(UnboundLocalError, match="local variable 'z'"):
        converted(f)(1)
    assert seen == [{"y": 1, "z": UNBOUND}, {"y": 2, "z": 3}]


LEVEL = [0]


def test_read_variables_include_closures_and_globals_but_no_functions():
    outside = ["outside"]

    def f(x):
        inside = ["inside"]
        if x:
            y = len(inside) + len(outside) + LEVEL[0] + sum(outside == outside for _ in [0])
        return y
    state, = recorded(f, 1).states[:1]
    assert state.names == ("y",)
    assert ["inside"] in state.read() and outside in state.read() and LEVEL in state.read()
    assert not any(callable(value) for value in state.read())


def test_dead_variables():
    def f(x):
        if x:
            temporary = x + 1
            kept = temporary * 2
        return kept
    assert recorded(f, 1).states[0].dead == {"temporary"}


def test_locals_keeps_every_variable_alive():
    def f(x):
        if x:
            y = 1
        return sorted(locals())
    assert not recorded(f, 1).states[0].dead


def test_what_a_nested_function_changes_is_alive():
    def f(x):
        n = 0

        def up():
            nonlocal n
            n += 1
        if x:
            n = 5
        up()
        n = 7
        return n
    assert not recorded(f, 1).states[0].dead


def test_what_an_iteration_sets_first_is_local_to_it():
    def f(x):
        total = 0
        for i in range(x):
            square = i * i
            total = total + square
        return total
    state = recorded(f, 3).states[0]
    assert {"i", "square"} <= state.dead and {"i", "square"} <= state.local and "total" not in state.dead


def test_a_loop_stops_for_break_and_return_only():
    def f(x):
        for i in range(x):
            if i == 5:
                continue
        while x > 0:
            x = x - 1
            if x == 2:
                break
        for _ in range(3):
            if x == 9:
                return x
        return 0
    assert [stop is None for stop in recorded(f, 3).stops] == [True, False, False]


def test_a_function_that_returns_on_every_path_has_no_flag():
    def f(x):
        if x > 2:
            return 1
        if x < 0:
            return 2
        y = 3
        return y
    for state in recorded(f, 1).states:
        assert "$returned" not in state.names and "$value" in state.names
