"""Monograph: one whole graph of a PyTorch model, compiled to native code.

    fast = monograph.compile(model)
    print(monograph.capture(model, x))
    print(monograph.explain(model, x))
    monograph.verify(model, inputs=[(x,)])

Names are resolved on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from monograph import registration

if TYPE_CHECKING:
    from monograph.api import allow_in_graph as allow_in_graph
    from monograph.api import capture as capture
    from monograph.api import compile as compile
    from monograph.api import disable as disable
    from monograph.api import mark_dynamic as mark_dynamic
    from monograph.api import refresh as refresh
    from monograph.api import reset as reset
    from monograph.tools.explain import explain as explain
    from monograph.tools.verify import verify as verify

__version__ = "0.1.0"

_HOME = {
    "allow_in_graph": "monograph.api",
    "capture": "monograph.api", "compile": "monograph.api", "disable": "monograph.api",
    "mark_dynamic": "monograph.api", "refresh": "monograph.api", "reset": "monograph.api",
    "explain": "monograph.tools.explain", "verify": "monograph.tools.verify",
    **dict.fromkeys(
        ("CaptureError", "CompileError", "DataDependentError", "DeviceError", "InputError", "MismatchError",
         "MonographError", "UnsupportedError", "VerificationError"), "monograph.errors"),
}
__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    if home != "monograph.errors":
        _watch()
    return value


def _watch() -> None:
    """MONOGRAPH_DEBUG is answered by a tool; the layers below do not know it."""
    importlib.import_module("monograph.backend").observer = _observer


def _observer(directory: Any, graph: Any) -> Any:
    return importlib.import_module("monograph.tools.dump").Dump(directory, graph)


def __dir__() -> list[str]:
    return __all__


class _Package(types.ModuleType):
    """`monograph.capture` is the function. The package of that name, which importing it binds here, is reached by
    `import monograph.capture.x` and `from monograph.capture import x` all the same."""

    @property
    def capture(self) -> Any:
        return __getattr__("capture")

    @capture.setter
    def capture(self, package: types.ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
registration.before_use.append(_watch)
registration.announce()
