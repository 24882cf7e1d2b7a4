"""What a program reads without spelling where, or of what cannot be watched: a change is seen by the next call."""

from __future__ import annotations

import decimal
import gc
import importlib
import io
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import monograph
from monograph.api import dispatcher_of
from tests.capture import read_module
from tests.capture.harness import assert_change_is_seen

VALUE = 1.0
ALIASES = (read_module,)
STREAM = io.StringIO()
GENERATOR = torch.Generator()
WEIGHT = torch.nn.Parameter(torch.ones(1))
LITERAL = torch.tensor([1.23456789])
ARRAY = np.array([1.23456789])
LARGE = np.zeros(1 << 16)


class Class:
    value = 1.0


class Slots:
    __slots__ = ("entries",)


SLOTS = Slots()
LISTS = {1.0: [1.0], 2.0: [2.0]}
SLOTS.entries = LISTS[1.0]


def store(value: float) -> None:
    globals()["VALUE"] = read_module.value = Class.value = value


def executed(x):
    found: dict[str, Any] = {}
    exec("y = VALUE", globals(), found)
    return x + found["y"]


def imported(x):
    import tests.capture.read_module as inside  # noqa: PLC0415

    return x + inside.value


def imported_name(x):
    from tests.capture.read_module import value  # noqa: PLC0415

    return x + value


def aliased(x):
    module = read_module
    return x + module.value


def aliased_class(x):
    found = Class
    return x + found.value


def precise(value: float) -> None:
    decimal.getcontext().prec = 28 if value == 1 else 3


def written(value: float) -> None:
    STREAM.seek(0)
    STREAM.truncate()
    STREAM.write("a" * int(value))


def collect(value: float) -> None:
    (gc.enable if value == 1 else gc.disable)()


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[float], Any]]] = {
    "globals": (lambda x: x + globals()["VALUE"], store), "eval": (lambda x: x + eval("VALUE"), store),
    "exec": (executed, store), "sys.modules": (lambda x: x + sys.modules[read_module.__name__].value, store),
    "import": (imported, store), "from import": (imported_name, store),
    "import_module": (lambda x: x + importlib.import_module(read_module.__name__).value, store),
    "getattr": (lambda x: x + getattr(read_module, "value"), store),       # noqa: B009
    "vars": (lambda x: x + vars(read_module)["value"], store),
    "__dict__": (lambda x: x + read_module.__dict__["value"], store), "alias": (aliased, store),
    "in a tuple": (lambda x: x + ALIASES[0].value, store),
    "attrgetter": (lambda x: x + operator.attrgetter("value")(read_module), store),
    "absent": (lambda x: x + getattr(read_module, "other", 1.0),
               lambda value: vars(read_module).pop("other", 0) if value == 1 else setattr(read_module, "other", 2.0)),
    "class": (lambda x: x + getattr(Class, "value"), store),       # noqa: B009
    "alias of a class": (aliased_class, store), "dict of a class": (lambda x: x + Class.__dict__["value"], store),
    "slots": (lambda x: x + SLOTS.entries[0], lambda value: setattr(SLOTS, "entries", LISTS[value])),
    "entry of slots": (lambda x: x + SLOTS.entries[0], lambda value: LISTS[1.0].__setitem__(0, value)),
    "decimal": (lambda x: x + float(decimal.Decimal(1) / decimal.Decimal(3)), precise),
    "text of a tensor": (lambda x: x + len(str(LITERAL)),
                         lambda value: torch.set_printoptions(precision=3 + int(value))),
    "text of an array": (lambda x: x + len(str(ARRAY)), lambda value: np.set_printoptions(precision=7 + int(value))),
    "large array": (lambda x: x + float(LARGE[3]), lambda value: LARGE.__setitem__(3, value)),
    "stream": (lambda x: x + len(STREAM.getvalue()), written),
    "gc": (lambda x: x + gc.isenabled(), collect),
    "matmul precision": (lambda x: x + len(torch.get_float32_matmul_precision()),
                         lambda value: torch.set_float32_matmul_precision("highest" if value == 1 else "high")),
    "seed": (lambda x: x + GENERATOR.initial_seed(), lambda value: GENERATOR.manual_seed(int(value))),
    "state": (lambda x: x + GENERATOR.get_state().double().sum(), lambda value: GENERATOR.manual_seed(int(value))),
    "attribute of a weight": (lambda x: x + WEIGHT.detach() * WEIGHT.mark,
                              lambda value: setattr(WEIGHT, "mark", value)),
    "absent from a weight": (lambda x: x + getattr(WEIGHT, "other", 1.0),
                             lambda value: vars(WEIGHT).pop("other", None) if value == 1 else
                             setattr(WEIGHT, "other", value)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_change_is_seen(name: str) -> None:
    assert_change_is_seen(*CASES[name], backend="reference")


def test_attributes_of_an_argument() -> None:
    def function(x):
        return x * getattr(x, "scale", 1.0) + (10.0 if hasattr(x, "mark") else 20.0)

    compiled = monograph.compile(function, backend="reference")
    for scale in (None, 2.0, 3.0, 2.0):
        for marked in (False, True):
            x = torch.ones(2)
            if scale is not None:
                x.scale = scale
            if marked:
                x.mark = None
            assert torch.equal(compiled(x), function(x))
    assert len(monograph.api.dispatcher_of(compiled).entries) == 6


def mark_an_argument(x):
    x.mark = 1
    return x * 2


def mark_a_weight(x):
    WEIGHT.seen = 1
    return x * WEIGHT


@pytest.mark.parametrize("function", [mark_an_argument, mark_a_weight], ids=lambda f: f.__name__)
def test_attributes_that_are_set_are_refused(function: Any) -> None:
    with pytest.raises(monograph.UnsupportedError, match="attribute (mark|seen)"):
        monograph.compile(function, backend="reference")(torch.ones(2))
    assert not hasattr(WEIGHT, "seen")


def test_attributes_of_what_the_program_makes() -> None:
    def function(x):
        y = x * 2
        y.mark = 3.0
        return y * y.mark

    assert torch.equal(monograph.compile(function, backend="reference")(torch.ones(2)), function(torch.ones(2)))


def test_modules_are_as_they_were() -> None:
    before = type(read_module)
    monograph.compile(aliased, backend="reference")(torch.ones(1))
    assert type(read_module) is before and "__getattr__" not in vars(torch.Tensor)


def test_what_a_module_reads_and_prints_when_it_is_loaded(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / "loaded_in_a_call.py").write_text(
        "import os\nhome, own = os.environ.get('HOME'), os.getpid()\nprint('loaded')\nvalue = 2\n")
    monkeypatch.syspath_prepend(tmp_path)

    def function(x):
        import loaded_in_a_call  # noqa: PLC0415
        return x * loaded_in_a_call.value

    fast = monograph.compile(function, backend="reference")
    x = torch.ones(2)
    assert torch.equal(fast(x), 2 * x) and torch.equal(fast(x), 2 * x)
    assert capsys.readouterr().out == "loaded\n"
    entry, = dispatcher_of(fast).entries
    labels = [fact.label for fact in entry.guard.facts]
    assert not [label for label in labels if "HOME" in label or "getpid" in label]
    del sys.modules["loaded_in_a_call"]
