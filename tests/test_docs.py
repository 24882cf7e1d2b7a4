"""The Python blocks of the guides run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
GUIDES = ["control_flow.md"]


@pytest.mark.parametrize("guide", GUIDES)
def test_blocks_run(guide: str, tmp_path: Path) -> None:
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(), re.S)):
        file = tmp_path / f"{Path(guide).stem}_{number}.py"
        file.write_text(block)           # conversion reads the source of functions from their file
        exec(compile(block, str(file), "exec"), {"__name__": "guide"})
