import signal
import threading

import pytest
import torch

from monograph.errors import CompileError, InputError
from monograph.runtime import execute, native, probe
from monograph.runtime.execute import Executable
from monograph.runtime.program import Error, Library, Native, Program, Slot, SlotRef
from tests.compare import lines_of
from tests.forked import in_child
from tests.runtime.llvm import compile_ir, runner
from tests.runtime.programs import add_ir, check_ir, sum_program, tensor_type, threads_program


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_layout_is_learnt_on_this_torch():
    assert probe.layout() is not None


def test_runs_native_steps_through_the_arena():
    run = Executable(sum_program(3, 5)).run
    a, b = torch.randn(3, 5), torch.randn(3, 5)
    assert torch.equal(run([a, b])[0], a + b + b)
    assert torch.equal(run([b, a])[0], b + a + a)


def test_outputs_are_fresh():
    run = Executable(sum_program(4)).run
    a, b = torch.ones(4), torch.ones(4)
    first, second = run([a, b])[0], run([a, b])[0]
    first.zero_()
    assert second.eq(3).all()


def test_reads_views_parameters_and_inference_tensors():
    run = Executable(sum_program(4)).run
    base = torch.randn(10)
    b = torch.nn.Parameter(torch.randn(4))
    assert torch.equal(run([base[3:7], b])[0], base[3:7] + b + b)
    with torch.inference_mode():
        c = torch.randn(4)
        result = run([c, b])[0]
    assert result.is_inference()
    assert torch.equal(run([c, b])[0], c + b + b)


def test_reads_subclasses_and_lazy_negatives_the_public_way():
    class Marked(torch.Tensor):
        pass

    run = Executable(sum_program(4)).run
    a = torch.randn(4)
    imaginary = torch.randn(4, dtype=torch.complex64).conj().imag
    assert imaginary.is_neg()
    kind = tensor_type(4, strides=(2,))
    program = sum_program(4)
    program.inputs[1] = kind
    marked = a.as_subclass(Marked)
    assert torch.equal(run([marked, a])[0], a + a + a)
    assert torch.equal(run([a, a])[0], a + a + a)
    with pytest.raises(InputError):
        run([a, imaginary])


@pytest.mark.parametrize("bad", [
    torch.randn(5), torch.randn(4).double(), torch.randn(4, 1), torch.randn(8)[::2], torch.empty(4, device="meta"),
    torch.randn(4).to_sparse(), "text", None, 3,
])
def test_wrong_inputs_are_refused(bad):
    run = Executable(sum_program(4)).run
    good = torch.ones(4)
    with pytest.raises(InputError, match="input 1"):
        run([good, bad])
    assert run([good, good])[0].eq(3).all()
    with pytest.raises(InputError, match="2 tensors"):
        run([good])


def test_a_failed_call_on_an_odd_tensor_leaves_no_pointers_behind():
    index = tensor_type(2, dtype=torch.int64)
    program = Program(
        slots=[Slot("input", 0, index)], inputs=[index], outputs=[],
        steps=[Native("check", (0,), can_fail=True)], objects=[compile_ir(check_ir("check", 5)), runner()],
        errors=[Error("IndexError", "{0}"), Error("ValueError", "{0} of {x}")],
    )
    run = Executable(program).run
    odd = torch.tensor([9, 9]).as_subclass(type("Odd", (torch.Tensor,), {}))
    with pytest.raises(ValueError, match=r"\{0\} of \{x\}"):
        run([odd])
    assert run([torch.tensor([1, 1])]) == []


def test_many_dims_and_none():
    for shape in ((), (2, 1, 3, 1, 2, 2, 2), (1,) * 9):
        run = Executable(sum_program(*shape)).run
        a, b = torch.randn(shape), torch.randn(shape)
        assert torch.equal(run([a, b])[0], a + b + b)
        if len(shape) > 5 and 3 in shape:
            with pytest.raises(InputError):
                run([a.transpose(2, 4).contiguous(), b])


def test_emptied_storages_are_refused():
    run = Executable(sum_program(4)).run
    a, gone = torch.ones(4), torch.ones(4)
    gone.untyped_storage().resize_(0)
    with pytest.raises(InputError, match="no memory"):
        run([a, gone])


def test_strides_of_size_one_dims_do_not_matter():
    run = Executable(sum_program(1, 4)).run
    a = torch.randn(4).as_strided((1, 4), (77, 1))
    assert torch.equal(run([a, a])[0], a + a + a)


def test_empty_tensors():
    run = Executable(sum_program(0, 4)).run
    assert run([torch.empty(0, 4), torch.empty(0, 4)])[0].shape == (0, 4)


def test_outputs_have_the_strides_they_are_declared_with():
    kind = tensor_type(2, 3, strides=(1, 2))
    program = sum_program(2, 3)
    program.inputs[:] = program.outputs[:] = [kind, kind][:1] * 2
    program.outputs[:] = [kind]
    a = torch.randn(3, 2).t()
    result = Executable(program).run([a, a])[0]
    assert result.stride() == (1, 2)
    assert torch.equal(result, a * 3)


def test_a_failed_check_raises_eagers_error_and_leaves_everything_usable():
    index = tensor_type(dtype=torch.int64)
    program = Program(
        slots=[Slot("input", 0, index)], inputs=[index], outputs=[],
        steps=[Native("check", (0,), can_fail=True, errors=(1, 0))],
        objects=[compile_ir(check_ir("check", 5)), runner()],
        errors=[
            Error("IndexError", "index {0} is out of bounds for size {1}", "model.py", 12),
            Error("ValueError", "never"),
        ],
    )
    run = Executable(program).run
    for _ in range(2):
        assert run([torch.tensor(4)]) == []
        with pytest.raises(IndexError, match="index 9 is out of bounds for size 5") as caught:
            run([torch.tensor(9)])
        assert lines_of(caught.value) == [12]


def library_program():
    """out0 = softmax(a + b) (library, straight into the output), out1 = (a + b) + out0."""
    kind = tensor_type(4, 4)
    return Program(
        slots=[Slot("input", 0, kind), Slot("input", 1, kind), Slot("arena", 128, kind), Slot("output", 0, kind),
               Slot("output", 1, kind)],
        inputs=[kind, kind], outputs=[kind, kind], arena_bytes=256,
        steps=[
            Native("add", (0, 1, 2)),
            Library("aten._softmax.default", (SlotRef(2),), {"dim": -1, "half_to_float": False}, (3,)),
            Native("add", (2, 3, 4)),
        ],
        objects=[compile_ir(add_ir("add", 16)), runner()],
    )


def test_library_steps_between_native_ones():
    run = Executable(library_program()).run
    a, b = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        first, second = run([a, b])
    assert torch.equal(first, (a + b).softmax(-1)) and torch.equal(second, a + b + first)
    assert not first.requires_grad


def test_library_results_that_alias_operands_are_copied():
    kind, turned = tensor_type(2, 2), tensor_type(2, 2, strides=(1, 2))
    program = Program(
        slots=[Slot("input", 0, kind), Slot("output", 0, turned)], inputs=[kind], outputs=[turned],
        steps=[Library("aten.t.default", (SlotRef(0),), {}, (1,))],
    )
    a = torch.randn(2, 2)
    result = Executable(program).run([a])[0]
    assert torch.equal(result, a.t()) and result.data_ptr() != a.data_ptr()


def test_library_calls_with_lists_and_resolved_ops():
    kind, wide = tensor_type(2), tensor_type(4)
    program = Program(
        slots=[Slot("input", 0, kind), Slot("output", 0, wide), Slot("output", 1, kind)],
        inputs=[kind], outputs=[wide, kind],
        steps=[
            Library("aten.cat.default", ((SlotRef(0), SlotRef(0)),), {"dim": 0}, (1,)),
            Library("mono.twice", (SlotRef(0),), {"by": 2}, (2,)),
        ],
    )
    own = {"mono.twice": lambda operands, attributes: operands[0] * attributes["by"]}
    a = torch.randn(2)
    first, second = Executable(program, resolve=own.get).run([a])
    assert torch.equal(first, torch.cat([a, a])) and torch.equal(second, a * 2)
    with pytest.raises(CompileError, match="mono.twice"):
        Executable(program)


def test_run_timed_measures_every_step():
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    executable = Executable(library_program())
    outputs, seconds = executable.run_timed([a, b])
    with pytest.raises(InputError):
        executable.run_timed([a])
    assert len(seconds) == 3 and torch.equal(outputs[1], executable.run([a, b])[1])


def test_public_way_without_a_layout(monkeypatch):
    monkeypatch.setattr(probe, "layout", lambda: None)
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    assert torch.equal(Executable(sum_program(4, 4)).run([a, b])[0], a + b + b)
    assert torch.equal(Executable(library_program()).run([a, b])[0], (a + b).softmax(-1))


def test_missing_kernel_or_runner_is_named():
    program = sum_program(4)
    program.steps.append(Native("missing", (0,)))
    with pytest.raises(CompileError, match="missing"):
        Executable(program)
    program = sum_program(4)
    program.objects.pop()
    with pytest.raises(CompileError, match="runner"):
        Executable(program)


def test_many_threads_at_once(monkeypatch):
    monkeypatch.setattr(native, "LONG_BYTES", 1)
    executable = Executable(sum_program(1000))
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        a, b = torch.randn(1000, generator=generator), torch.randn(1000, generator=generator)
        expected = a + b + b
        wrong.extend(seed for _ in range(200) if not torch.equal(executable.run([a, b])[0], expected))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and 1 <= len(executable._frames) <= 4
    executable.trim()
    assert not executable._frames


def test_parallel_regions_follow_set_num_threads():
    run = Executable(threads_program()).run
    for count in (1, 2, 1):
        torch.set_num_threads(count)
        assert run([])[0].sum() == count
    torch.set_num_threads(2)
    seen = []
    worker = threading.Thread(target=lambda: seen.append(int(run([])[0].sum())))
    worker.start()
    worker.join()
    assert seen == [2]


def test_forked_child_of_a_parallel_parent():
    torch.set_num_threads(2)
    executable = Executable(threads_program())
    assert executable.run([])[0].sum() == 2
    assert in_child(lambda: executable.run([])[0].sum() == 1) == 0
    assert executable.run([])[0].sum() == 2


def test_library_steps_in_a_forked_child():
    torch.set_num_threads(2)
    kind = tensor_type(512, 512)
    program = Program(
        slots=[Slot("input", 0, kind), Slot("output", 0, kind)], inputs=[kind], outputs=[kind],
        steps=[Library("aten.exp.default", (SlotRef(0),), {}, (1,))],
    )
    executable = Executable(program)
    x = torch.randn(512, 512)
    expected = executable.run([x])[0]
    assert in_child(lambda: torch.equal(executable.run([x])[0], expected)) == 0


def test_data_loader_workers():
    """Workers are forked while the parent's pool is alive, and run the program they inherited."""
    torch.set_num_threads(2)
    executable = Executable(threads_program())
    executable.run([])
    loader = torch.utils.data.DataLoader(range(4), num_workers=2, collate_fn=lambda _: executable.run([])[0].sum())
    assert [int(total) for total in loader] == [1, 1, 1, 1]


def test_interrupt_leaves_the_frame_pool_usable(monkeypatch):
    executable = Executable(library_program())
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    expected = executable.run([a, b])[1]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(execute.library.Call, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            executable.run([a, b])
    assert torch.equal(executable.run([a, b])[1], expected)


def test_ctrl_c_at_any_moment():
    """A timer interrupts a loop of calls in many places; every call that ends is right."""
    executable = Executable(library_program())
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    expected = executable.run([a, b])
    armed = [False]

    def interrupt(*_):
        if armed[0]:
            armed[0] = False          # once, so that nothing of the test itself is hit
            raise KeyboardInterrupt

    def loop(delay):
        try:
            signal.setitimer(signal.ITIMER_PROF, delay)
            armed[0] = True
            for _ in range(1000):
                assert all(map(torch.equal, executable.run([a, b]), expected))
            armed[0] = False
        except KeyboardInterrupt:
            return 1
        return 0

    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        interrupts = sum(loop(0.0002 + 0.00001 * i) for i in range(100))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert interrupts
    assert all(map(torch.equal, executable.run([a, b]), expected))
