"""The import rules of docs/development.md, checked on the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "monograph"

# What each part may import of ours: the table in docs/development.md. A part may always import itself.
MAY_IMPORT = {
    "source": (),
    "errors": ("source",),
    "config": ("errors",),
    "compat": (),
    "ir": ("source", "errors"),
    "ops": ("source", "errors", "ir", "compat"),
    "capture": ("source", "errors", "ir", "ops", "compat", "config"),
    "transform": ("source", "errors", "ir", "ops"),
    "autodiff": ("source", "errors", "ir", "ops", "transform", "capture"),
    "schedule": ("source", "errors", "ir", "ops"),
    "loops": ("source", "errors", "ir", "ops", "schedule"),
    "templates": ("source", "errors", "ir", "loops"),
    "codegen": (
        "source", "errors", "ir", "ops", "loops", "templates", "schedule", "runtime.program", "runtime.abi",
        "runtime.recipe", "config", "compat",
    ),
    "runtime": ("source", "errors", "ir.types", "ir.dtypes", "ir.symbolic", "ir.placement", "ir.boundary", "compat"),
    "cache": ("source", "errors", "ir", "runtime", "config"),
}
ANYTHING = {"tools", "__main__", "__init__"}
# Every other file at the top of the package is part of the face: it may import all of the above, never tools.
FACE = {path.stem for path in PACKAGE.glob("*.py")} - {*MAY_IMPORT, *ANYTHING}
OPTIONAL = {"rich", "transformers", "onnx", "torchvision", "llvmlite"}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path):
    """The first component below the package: a file's stem or a directory's name."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(tree):
    """(line, dotted name, inside a function) of every import of a module."""
    inside = {
        id(node) for function in ast.walk(tree) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}", id(node) in inside


def ours(name):
    """`ir.types` for `monograph.ir.types.TensorType`, None for the imports of others."""
    head, _, rest = name.partition(".")
    return rest if head == "monograph" else None


def allowed(part, target):
    if part in ANYTHING or target.split(".")[0] == part:
        return True
    permitted = (*MAY_IMPORT, *FACE) if part in FACE else MAY_IMPORT[part]
    return any(target == rule or target.startswith(f"{rule}.") or _names(rule, target) for rule in permitted)


def _names(rule, target):
    """`from monograph.ir import types` is read as `ir.types`; `from monograph import compat` as `compat`."""
    return target.split(".")[:rule.count(".") + 1] == rule.split(".")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    part = part_of(path)
    wrong = []
    for line, name, is_inside in imports(ast.parse(path.read_text())):
        target = ours(name)
        if target is not None and not allowed(part, target):
            wrong.append(f"{path.name}:{line}: {part} must not import {target}")
        if is_inside and name.split(".")[0] not in OPTIONAL and part not in ("__init__", "__main__"):
            wrong.append(f"{path.name}:{line}: {name} is imported inside a function")
        if name == "monograph" or (name.startswith("monograph.__init__")):
            wrong.append(f"{path.name}:{line}: import the module you mean, not the package")
    assert not wrong, "\n".join(wrong)


def test_every_package_has_a_rule():
    parts = {part_of(path) for path in modules()}
    assert parts <= {*MAY_IMPORT, *FACE, *ANYTHING}, "say in docs/development.md and here what a new part may import"


def loaded_after(statement):
    code = f"import sys; {statement}; print(*sorted(sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout.split()


def test_the_runtime_needs_neither_the_compiler_nor_torchs():
    names = [f"monograph.runtime.{path.stem}" for path in (PACKAGE / "runtime").glob("*.py")]
    loaded = loaded_after(f"import {', '.join(names)}")
    for forbidden in ("llvmlite", "torch._dynamo", "torch._inductor", "monograph.codegen", "monograph.ops",
                      "monograph.capture"):
        assert not [name for name in loaded if name == forbidden or name.startswith(f"{forbidden}.")]
