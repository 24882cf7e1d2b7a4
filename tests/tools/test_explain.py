"""explain and the debug dump."""

import pytest
import torch
from torch import nn

import monograph


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return torch.softmax(self.norm(nn.functional.gelu(self.linear(x))), -1)


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def test_explain_tells_kernels_and_lines():
    explanation = monograph.explain(Net(), torch.randn(4, 8))
    kinds = [row.kind for row in explanation.kernels["forward"]]
    assert kinds[0] == "gemm" and set(kinds) <= {"gemm", "kernel"}
    assert explanation.fusion_rate > 0.7 and not explanation.library_calls
    assert 0 < explanation.arena_bytes <= explanation.intermediate_bytes
    text = str(explanation)
    for part in ("aten.linear.default", "test_explain.py:", "passes that fired", "fusion rate", "arena", "guard:"):
        assert part in text


def test_explain_names_library_calls():
    explanation = monograph.explain(lambda x: x.sort()[0] + 1, torch.eye(3))
    assert sum(explanation.library_calls.values()) == 1
    assert explanation.fusion_rate == 0


def test_a_size_that_a_value_tells_is_no_library_call():
    text = str(monograph.explain(lambda x, n: x[:int(n)] * 2, torch.ones(5), torch.tensor(3)))
    assert "library calls: none" in text and "size      number  -> int(v0)" in text
    assert "  []" not in text


def test_explain_of_a_compiled_function_tells_recompiles():
    fast = monograph.compile(lambda x: x + 1)
    fast(torch.ones(2))
    fast(torch.ones(3))
    explanation = monograph.explain(fast, torch.ones(2))
    assert len(explanation.recompiles) == 1 and "shape" in str(explanation)


def test_explain_with_gradients_has_two_halves():
    with torch.enable_grad():
        explanation = monograph.explain(Net(), torch.randn(4, 8))
    assert list(explanation.kernels) == ["forward", "backward"]


def test_debug_directory_gets_every_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("MONOGRAPH_DEBUG", str(tmp_path / "dump"))
    monograph.compile(Net())(torch.randn(4, 8))
    names = {path.name for path in (tmp_path / "dump").rglob("*")}
    assert {"00-captured.txt", "schedule.txt", "loops.txt", "kernels.ll", "kernels.s"} <= names
    assert any("expand" in name for name in names)


def test_unwritable_debug_directory(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MONOGRAPH_DEBUG", str(tmp_path / "file"))
    with pytest.raises(monograph.InputError, match="MONOGRAPH_DEBUG"):
        monograph.compile(lambda x: x + 1)(torch.ones(1))


def turned(x, n):
    i = torch.zeros((), dtype=torch.int64)
    while i < n:
        x = torch.sin(x) if x.sum() > 0 else x.sort()[0]
        i = i + 1
    return x


def test_explain_counts_what_runs_from_python():
    explanation = monograph.explain(turned, torch.eye(3), torch.tensor(4))
    assert sum(explanation.python_steps.values()) == 1 and "steps that run from Python: 1" in str(explanation)
    rows = explanation.kernels["forward"]
    assert {"branch", "jump", "kernel", "library"} == {row.kind for row in rows}
    assert all(row.lines[0].startswith("test_explain.py:") for row in rows if row.kind == "branch")
