"""Original and converted side by side: result or exception and where it was raised, what was said, arguments after."""

import copy
import functools
import re
import types

from monograph.capture.convert import compile as compiler

__all__ = ["CASES", "case", "converted", "outcome", "same", "say"]

# A comprehension is a frame of its own in some versions of Python.
COMPREHENSION = re.compile(r"\.<locals>\.<(list|set|dict)comp>$")
CASES: list[tuple] = []
SAID: list = []


def say(value, result=None):
    """Something that happens: `value` is remembered, `result` (or the value) is given back."""
    SAID.append(copy.copy(value))
    return value if result is None else result


def case(*calls):
    """Registers a function with the argument tuples that it is called on."""
    def register(function):
        CASES.extend((function, arguments) for arguments in calls)
        return function
    return register


def converted(function):
    """A function of the same closure and defaults that runs converted code."""
    new = types.FunctionType(compiler.convert(function.__code__), function.__globals__, function.__name__,
                             function.__defaults__, function.__closure__)
    new.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(new, function, updated=())


def outcome(function, arguments, file):
    """Everything about one call that a user can see."""
    SAID.clear()
    arguments = copy.deepcopy(arguments)
    try:
        result = function(*arguments)
        if isinstance(result, types.GeneratorType):
            result = list(result)
        ended = ("returned", shown(result))
    except Exception as error:
        lines = []
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == file:
                lines.append((trace.tb_lineno, COMPREHENSION.sub("", trace.tb_frame.f_code.co_qualname)))
            trace = trace.tb_next
        context = error.__context__
        ended = ("raised", type(error), str(error), lines[-1], type(context), str(context), type(error.__cause__))
    return (*ended, [shown(value) for value in SAID], shown(arguments))


def shown(value):
    """A value and its types, as text; functions by name."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    if isinstance(value, dict):
        return "dict", [(shown(key), shown(item)) for key, item in value.items()]
    if isinstance(value, types.FunctionType):
        return "function", value.__name__, value.__qualname__, value.__defaults__, value.__doc__
    if isinstance(value, type):
        return "class", value.__name__, value.__qualname__
    return type(value).__name__, (repr(value) if " at 0x" not in repr(value) else "")


def same(function, arguments):
    file = function.__code__.co_filename
    expected = outcome(function, arguments, file)
    got = outcome(converted(function), arguments, file)
    assert got == expected, f"\n{compiler.text(function.__code__)}\n{expected}\n{got}"
