"""The part that touches LLVM: module text in, machine code out.

Runs in a process of its own, which `workers` starts with this file alone: it imports the standard library and
llvmlite, neither torch nor the rest of the package. `host` also serves in the process of the caller.

    $ python -I -S llvm_worker.py <folder that holds llvmlite> <seconds a request may take>
    Request  ::= JSON line {"work": "host"} | {"work": "object", "triple", "cpu", "features", "size"}  text of that size
    Response ::= JSON line {"state": "done" | "refused" | "missing", "size"}  object, JSON or message of that size

`refused`: LLVM finds fault with the text. `missing`: there is no LLVM to be had here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
from typing import Any, BinaryIO

__all__ = ["OPTIMISE", "binding", "compile_module", "host"]

OPTIMISE = 3                    # of instruction selection and scheduling
MISSING = (ImportError, OSError, RuntimeError)          # what loading LLVM may raise


@functools.cache
def binding() -> Any:
    """llvmlite's binding, with the code generator of this machine's architecture made ready."""
    import llvmlite.binding as llvm  # noqa: PLC0415 (tens of megabytes: loaded where it is needed)

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Loop strength reduction takes half the time of compiling a register tile and gains nothing: emission has
    # hoisted the addresses already. (Measured on GEMM and convolution tiles: 57 -> 31 ms, equal speed.)
    llvm.set_option("monograph", "-disable-lsr")
    return llvm


def host() -> dict[str, Any]:
    """What LLVM says of this machine: triple, cpu, layout, the features it has, and all features as text."""
    llvm = binding()
    features = llvm.get_host_cpu_features()
    triple, cpu = llvm.get_default_triple(), llvm.get_host_cpu_name()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu)
    return {
        "triple": triple, "cpu": cpu, "layout": str(machine.target_data),
        "has": sorted(name for name, present in features.items() if present), "features": features.flatten(),
    }


def compile_module(text: str, triple: str, cpu: str, features: str, *, assembly: bool = False) -> bytes:
    """Object code or assembly. RuntimeError with LLVM's words where the text is refused."""
    llvm = binding()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=OPTIMISE, reloc="pic", codemodel="small",
    )
    module = llvm.parse_assembly(text, llvm.create_context())
    return bytes(machine.emit_assembly(module).encode() if assembly else machine.emit_object(module))


def _answer(request: dict[str, Any], text: bytes) -> tuple[str, bytes]:
    try:
        binding()
    except MISSING as error:
        return "missing", str(error).encode()
    if request["work"] == "host":
        return "done", json.dumps(host()).encode()
    try:
        return "done", compile_module(text.decode(), request["triple"], request["cpu"], request["features"])
    except RuntimeError as error:
        return "refused", str(error).encode()


def _serve(requests: BinaryIO, responses: BinaryIO, seconds: int) -> None:
    """Answer until the other side closes its end, dies, or has nothing to ask for long."""
    while True:
        if hasattr(signal, "alarm"):
            signal.alarm(seconds)           # the system ends the process: nothing of ours may hang for ever
        line = requests.readline()
        if not line:
            return
        request = json.loads(line)
        state, content = _answer(request, requests.read(request.get("size", 0)))
        responses.write(json.dumps({"state": state, "size": len(content)}).encode() + b"\n" + content)
        responses.flush()


def main() -> None:
    """The process that `workers` starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # Ctrl-C is the parent's to act on: it ends this process
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                       # what libraries print is not an answer
    sys.path.append(sys.argv[1])
    with contextlib.suppress(*MISSING):                 # told in the first answer
        binding()                                       # while the parent is still busy with other things
    with contextlib.suppress(BrokenPipeError):
        _serve(sys.stdin.buffer, responses, int(sys.argv[2]))
    os._exit(0)                                         # LLVM has no need to tidy up


if __name__ == "__main__":
    main()
