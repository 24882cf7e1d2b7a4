"""Why a trace starts again. None of these leaves the driver.

They are no `Exception`s, so that handlers of the user's code let them pass.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

__all__ = ["Asked", "Fork", "Unmergeable"]


class Asked(BaseException):
    """Python asked for a traced value in `code`, which can be converted. `error` is what to say if it cannot."""

    def __init__(self, code: CodeType, error: Exception) -> None:
        self.code = code
        self.error = error
        super().__init__(code.co_name)


class Unmergeable(BaseException):
    """A region cannot stand for what its branches or iterations leave behind. `site`: whose, if not the innermost."""

    def __init__(self, why: str, site: Any = None) -> None:
        self.site = site
        super().__init__(why)


class Fork(BaseException):
    """Trace again; at `site` take the path that this call takes."""

    def __init__(self, site: Any, why: str) -> None:
        self.site = site
        super().__init__(why)
