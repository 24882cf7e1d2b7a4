"""LLVM IR text to an object file, for tests that need native code without the compiler's own back end."""

import functools

import llvmlite.binding as llvm

from monograph.codegen.runner import IR

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


@functools.cache
def machine(triple: str | None = None) -> llvm.TargetMachine:
    if triple is not None:
        return llvm.Target.from_triple(triple).create_target_machine(opt=1, reloc="pic", codemodel="small")
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, reloc="pic",
        codemodel="small",
    )


@functools.cache
def compile_ir(text: str, triple: str | None = None) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    return machine(triple).emit_object(module)


def runner() -> bytes:
    return compile_ir(IR)
