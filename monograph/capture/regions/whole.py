"""Objects that a branch may change but no region can merge: looked at as a whole, put back as a whole.

    Whole ::= class | bytearray | array | numpy array | text or bytes buffer | exception

`state(value)` is None for every other kind. A branch that changes one is followed along the path of the call.
"""

from __future__ import annotations

import array
import io
from typing import Any

import numpy as np

from monograph.capture.guards import same

__all__ = ["is_same", "put_back", "state"]

NOT_THE_USERS = ("torch", "numpy", "builtins", "collections", "typing", "enum", "abc", __name__.split(".")[0])


HOOKED = frozenset({"__getattribute__", "__setattr__", "__delattr__"})   # by the trace, for which a branch is no end


def attributes(cls: type) -> dict[str, Any]:
    return {name: entry for name, entry in vars(cls).items() if name not in HOOKED}


def state(value: Any) -> Any:
    if isinstance(value, type):
        return attributes(value) if str(value.__module__).split(".")[0] not in NOT_THE_USERS else None
    if isinstance(value, (bytearray, array.array)):
        return bytes(value)
    if type(value) is np.ndarray:
        return value.tobytes() if not value.dtype.hasobject else tuple(value.flat)
    if isinstance(value, (io.StringIO, io.BytesIO)):
        return None if value.closed else (value.getvalue(), value.tell())
    return value.args if isinstance(value, BaseException) else None


def is_same(before: Any, now: Any) -> bool:
    if isinstance(before, dict):
        return list(before) == list(now) and all(before[name] is now[name] for name in before)
    return same(before, now) if isinstance(before, tuple) else bool(before == now)


def put_back(value: Any, before: Any) -> None:
    if isinstance(value, type):
        now = attributes(value)
        for name in now.keys() - before.keys():
            type.__delattr__(value, name)
        for name, entry in before.items():
            if now.get(name) is not entry or name not in now:
                type.__setattr__(value, name, entry)
    elif isinstance(value, array.array):
        value[:] = array.array(value.typecode, before)
    elif isinstance(value, bytearray):
        value[:] = before
    elif type(value) is np.ndarray:
        value.flat = np.frombuffer(before, value.dtype) if isinstance(before, bytes) else list(before)
    elif isinstance(value, BaseException):
        value.args = before
    else:
        text, position = before
        value.seek(0)
        value.truncate()
        value.write(text)
        value.seek(position)
