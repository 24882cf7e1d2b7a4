"""A function's code object, converted.

The function is compiled inside a factory whose parameters are its free variables, inside a class of the name that
private names are mangled with; then its code object is taken out. In it and in the code objects in it the two marks
become the objects, and the functions made here bear the name of the user's function around them: a traceback shows
the user's file, line and function.
"""

from __future__ import annotations
import __future__

import ast
import sys
import threading
import types
import warnings

from monograph.capture.convert import answers, control, frames, source, syntax
from monograph.capture.convert.operators import OPERATORS
from monograph.capture.convert.support import SUPPORT
from monograph.capture.convert.syntax import Unconvertible, at

__all__ = ["Unconvertible", "convert", "converted_from", "text"]

TARGET = syntax.HIDDEN + "function"
FACTORY = syntax.HIDDEN + "factory"
INSIDE = f"{FACTORY}.<locals>.{TARGET}."
MARKS = {syntax.OPERATORS_MARK: OPERATORS, syntax.SUPPORT_MARK: SUPPORT}
FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
QUALIFIED = hasattr(types.CodeType, "co_qualname")
HIDDEN_LAMBDA = syntax.HIDDEN + "lambda"
# From 3.12 on only a generator expression has a frame of its own.
FRAMES = ("genexpr",) if sys.version_info >= (3, 12) else ("listcomp", "setcomp", "dictcomp", "genexpr")
HIDDEN_COMPREHENSIONS = tuple(syntax.HIDDEN + kind for kind in FRAMES)

_lock = threading.RLock()
# Equal code objects may come from different files: their name is part of the key.
_converted: dict[tuple[types.CodeType, str], types.CodeType | Unconvertible] = {}
_origins: dict[int, tuple[types.CodeType, types.CodeType]] = {}


def convert(code: types.CodeType) -> types.CodeType:
    """The code object of a function with its control flow as calls of `operators`; raises Unconvertible.

    It has the same arguments, free variables, name and lines. Remembered by code object.
    """
    if id(code) in _origins:
        raise Unconvertible(f"{code.co_name} is converted already")
    with _lock:
        known = _converted.get((code, code.co_filename))
        if known is None:
            try:
                known = _convert(code)
                _remember(known, code)
            except Unconvertible as reason:
                known = reason
            except RecursionError as error:     # perhaps the caller's stack is deep: not remembered
                raise Unconvertible(f"{code.co_name}: {error}") from error
            _converted[code, code.co_filename] = known
    if isinstance(known, Unconvertible):
        raise Unconvertible(known.reason)
    return known


def converted_from(code: types.CodeType) -> types.CodeType | None:
    """The user's code object that a converted one, or one of the code objects in it, was made from."""
    known = _origins.get(id(code))
    return None if known is None else known[1]


def text(code: types.CodeType) -> str:
    """What a function is converted into, for people to read."""
    written = ast.unparse(ast.fix_missing_locations(_converted_tree(code, _find(code))))
    for mark, name in ((syntax.OPERATORS_MARK, "OPERATORS"), (syntax.SUPPORT_MARK, "SUPPORT")):
        written = written.replace(repr(mark), name)
    return written


def _remember(new: types.CodeType, origin: types.CodeType) -> None:
    _origins[id(new)] = (new, origin)
    for value in new.co_consts:
        if isinstance(value, types.CodeType):
            _remember(value, origin)


def _convert(code: types.CodeType) -> types.CodeType:
    found = _find(code)
    try:
        raw = _compile(source.Found(_converted_tree(code, found), found.owner), code)
    except (SyntaxError, ValueError) as error:
        raise Unconvertible(f"{code.co_name}: {error}") from error
    qualified = code.co_qualname if QUALIFIED else code.co_name
    new = _finish(raw, code.co_name, qualified, qualified)
    for name in ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_freevars", "co_firstlineno"):
        if getattr(new, name) != getattr(code, name):
            raise Unconvertible(f"{code.co_name}: {name} is {getattr(new, name)}, not {getattr(code, name)}")
    return new


def _find(code: types.CodeType) -> source.Found:
    return source.find(code, lambda found: _compile(source.Found(_bare(found.node), found.owner), code))


def _converted_tree(code: types.CodeType, found: source.Found) -> source.Function:
    node = _bare(found.node)
    control.convert_function(node, has_class="__class__" in code.co_freevars)
    if code.co_name in answers.STRICT:
        node.body = answers.answer(node.body)
    return node


def _bare(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> source.Function:
    """A function without what is evaluated where it is defined; a lambda as a function."""
    first = source.first_line(node)
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [syntax.returned(node.body, node.body)]
        function = syntax.define(TARGET, (), body, node)
        assert isinstance(function, ast.FunctionDef)
        function.args = node.args
        node = function
    node.name, node.returns, node.lineno = TARGET, None, first
    node.decorator_list = []
    if hasattr(node, "type_params"):
        node.type_params = []
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [syntax.constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [default and syntax.constant(None) for default in arguments.kw_defaults]
    return node


def _compile(found: source.Found, code: types.CodeType) -> types.CodeType:
    """The code object of a function that is called TARGET, as if its free variables stood around it."""
    node = found.node
    assert not isinstance(node, ast.Lambda)
    if code.co_freevars:        # every one of them, read or not
        reads = ast.Tuple([syntax.load(name) for name in code.co_freevars], ast.Load())
        inner = syntax.thunk(at(reads, node.body[0]))       # read from inside, for `nonlocal` comes later
        kept = at(ast.If(syntax.constant(0), [ast.Expr(inner)], []), node.body[0])
        position = 1 if syntax.has_docstring(node.body) else 0
        node.body.insert(position, kept)
    outer = syntax.define(FACTORY, code.co_freevars, [node], node)
    top: ast.stmt = outer
    if found.owner is not None:
        definition = ast.ClassDef(found.owner, [], [], [outer], [])
        if "type_params" in ast.ClassDef._fields:
            definition.type_params = []  # type: ignore[attr-defined,unused-ignore]
        top = at(definition, node)
    module = ast.fix_missing_locations(ast.Module([top], []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = compile(module, code.co_filename, "exec", flags=code.co_flags & FUTURE, dont_inherit=True)
    found_code = _inside(compiled, TARGET)
    assert found_code is not None
    return found_code


def _inside(code: types.CodeType, name: str) -> types.CodeType | None:
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            found = value if value.co_name == name else _inside(value, name)
            if found is not None:
                return found
    return None


def _finish(code: types.CodeType, name: str, qualified: str, root: str) -> types.CodeType:
    """The marks as objects and the user's names, in a code object called `name` and in those in it."""
    consts: list[object] = []
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            hidden = _is_hidden(value)
            inner = _finish(value, *((name, qualified) if hidden else _names(value, name, qualified)), root)
            consts.append(inner)
            if hidden:
                frames.REGIONS.add(id(inner))
        elif isinstance(value, str) and value in MARKS:
            consts.append(MARKS[value])
        elif isinstance(value, str) and INSIDE in value:    # the qualified name of a class; of a function before 3.11
            consts.append(qualified if QUALIFIED and value == code.co_qualname else _shown(value, root))
        else:
            consts.append(value)
    changes = {"co_consts": tuple(consts), "co_name": name}
    if QUALIFIED:
        changes["co_qualname"] = qualified
    return code.replace(**changes)  # type: ignore[arg-type]


def _is_hidden(code: types.CodeType) -> bool:
    """Whether the source has no such function."""
    own = code.co_name
    if own.startswith((HIDDEN_LAMBDA, *HIDDEN_COMPREHENSIONS)):
        return False
    return own.startswith(syntax.HIDDEN) or (own == "<lambda>" and syntax.HIDDEN in code.co_varnames)


def _names(code: types.CodeType, name: str, qualified: str) -> tuple[str, str]:
    """What a code object that the source has inside a function called `name` is to be called."""
    own = code.co_name
    if own.startswith(HIDDEN_LAMBDA):
        own = "<lambda>"
    elif own.startswith(HIDDEN_COMPREHENSIONS):
        own = f"<{own.lstrip(syntax.HIDDEN).rstrip('0123456789')}>"
    declared_global = QUALIFIED and code.co_qualname == code.co_name
    if declared_global:
        return own, own
    in_class = QUALIFIED and not code.co_qualname.endswith(f"<locals>.{code.co_name}")
    return own, f"{qualified}.{own}" if in_class or name in source.COMPREHENSIONS else f"{qualified}.<locals>.{own}"


def _shown(value: str, qualified: str) -> str:
    """A qualified name as the user's source gives it."""
    inner = value.split(INSIDE, 1)[1]
    shown: list[str] = []
    for part in inner.split("."):
        if part.startswith(syntax.HIDDEN):
            if shown and shown[-1] == "<locals>":
                shown.pop()
        else:
            shown.append(part)
    return ".".join([qualified, *shown])
