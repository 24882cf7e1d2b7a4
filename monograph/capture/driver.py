"""`trace`: run the user's code once on fakes and give back what it did."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat, errors
from monograph.capture import blame, outline
from monograph.capture.arrays import lending
from monograph.capture.attributes import BACKWARD
from monograph.capture.averages import cumulative_averages
from monograph.capture.backward_hooks import BackwardHooks
from monograph.capture.boundary import Seal, remove_dead
from monograph.capture.captured import Binding, Captured, of_length
from monograph.capture.checks import checks_of_values
from monograph.capture.classes import told_classes
from monograph.capture.conversions import Conversions
from monograph.capture.convert.operators import entered
from monograph.capture.counted import listed, repeated
from monograph.capture.fn_mode import UserMode
from monograph.capture.higher_order import uncompiled
from monograph.capture.identity import asks
from monograph.capture.inputs import Restart
from monograph.capture.iterators import OneWay, is_one_way
from monograph.capture.joint import differentiable, new_histories, new_requirements, record_backward
from monograph.capture.names import Names
from monograph.capture.plain_ints import plain_ints
from monograph.capture.regions import custom_vjp, protocols
from monograph.capture.regions.errors import (
    Again,
    Asked,
    Cases,
    Caught,
    Fork,
    Numbers,
    Outline,
    Seen,
    Unmergeable,
    Whole,
    caught,
    forget,
    let_go,
    swallowed,
)
from monograph.capture.regions.operators import RegionOperators
from monograph.capture.sizes import check_assumed
from monograph.capture.state import Snapshot, clear_caches, outlived, reset_tensors
from monograph.capture.symbols import Origin, Request, SizesDiffer, refined
from monograph.capture.tracer import Tracer
from monograph.capture.tree import is_size
from monograph.ir.graph import Source, Value

__all__ = ["argument_path", "trace"]

Hook = AbstractContextManager[Any]
Derivative = Callable[..., dict[Value, Value]]
LEARNT = 4       # attempts after which no number that a value tells is a symbol


@compat.no_class_functions()
def trace(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], *, grad: bool | None = None,
          request: Request = MappingProxyType({}), hooks: Sequence[Hook] = (), roots: Sequence[Any] | None = None,
          derivative: Derivative | None = None, absence: Any = None, told: bool = True) -> Captured:
    """Capture one call of `fn(*args, **kwargs)` as one graph.

    `grad`: capture forward and backward together (None: when grad mode is on and something requires grad).
    `request`: sizes that are symbols; the others are those of the example, or, with `told`, symbols that values tell.
    `hooks` are entered around the user's code.
    `derivative`: of a region (see `regions.gradient`); without it, programs with regions have no backward.
    `absence(graph, start of the backward, gradient)`: a flag of gradients that a call may not have.
    `roots`: objects that tensors are named after and that must be left as found (None: `fn` and the arguments).
    Raises DataDependentError, UnsupportedError, DeviceError, or what the program itself raises. Torch and
    Python are left as they were found.
    """
    numeric: frozenset[Origin] | None = frozenset() if told else None
    plan = _Plan(request, told=numeric, numeric=numeric, conversions=Conversions(roots[0] if roots else fn))
    handled = sys.exc_info()[1]         # the caller's
    with plan.conversions:
        while True:
            alive: list[Any] = []
            try:
                return _Attempt(fn, args, kwargs, grad, hooks, plan, roots, alive, derivative,
                                absence).run()
            except Restart as restart:
                plan.flat.add(restart.storage_id)
            except SizesDiffer as differ:
                plan.request = differ.request
                plan.learn_numbers()
            except Asked as asked:
                plan.conversions.convert(asked.code)
            except Outline as found:
                plan.outline(found)
            except Numbers:
                plan.read_numbers = True
            except Caught as error:
                code = outline.behind(plan.tracer(), error)
                if code is not None:
                    plan.outline(Outline(code))
                elif not plan.know_better():
                    plan.read_numbers = True
            except Seen:
                pass
            except Cases as loop:
                plan.split.add(loop.site)
            except Whole as hook:
                plan.whole.add(hook.number)
            except Fork as fork:
                plan.fork(fork.site, fork.most)
            except Exception as error:
                # A traced number is no int: code that looks closely may mind.
                code = outline.behind(plan.tracer(), error) if plan.numbers or plan.sizes.told else None
                if code is not None:
                    plan.outline(Outline(code))
                elif plan.numbers and plan.conversions.convert_all(protocols.refused(error)):
                    pass
                elif not plan.know_better():
                    if isinstance(error, errors.MonographError) or plan.read_numbers or not plan.numbers:
                        raise
                    plan.read_numbers = True
            except Unmergeable as why:
                if why.site is not None and plan.forks.get(why.site) != sys.maxsize:
                    plan.fork(why.site)
                elif not plan.know_better():
                    raise errors.UnsupportedError(
                        str(why), why="a branch or loop must leave the same behind on every path") from None
            finally:
                let_go(handled)
                if outlived(alive):
                    clear_caches()


@dataclass
class _Plan:
    """What the attempts so far have taught."""

    request: Request                                    # sizes that are symbols
    flat: set[int] = field(default_factory=set)         # real storages that must be flat bases
    forks: dict[Any, int] = field(default_factory=dict)       # statements that take the path of this call
    split: set[Any] = field(default_factory=set)        # loops whose bodies are traced once per number
    whole: set[int] = field(default_factory=set)        # hooks of the backward that are called whole
    room: dict[Any, int] = field(default_factory=dict)        # loops -> entries that their lists have room for
    exact: bool = False                                 # no object stands for several: statements that choose one fork
    read_numbers: bool = False                          # integers are read from this call
    numbers: int = 0                                    # traced numbers made by the last attempt
    conversions: Conversions = field(default_factory=Conversions)
    outlined: dict[Any, str] = field(default_factory=dict)    # code of functions called whole -> "", or why it is not
    told: frozenset[Origin] | None = frozenset()        # `numeric` at first
    numeric: frozenset[Origin] | None = frozenset()     # symbols told by values that are to be numbers (None: all)
    general: bool = True                                # sizes that values tell are asked about only where torch must
    positive: bool = False                              # integers that are sizes are at least 1 where they are now
    learnt: int = 0                                     # attempts that have added to those
    sizes: Any = None                                   # those of the last attempt
    tracer: Any = None                                  # its tracer, by weak reference

    def know_better(self) -> bool:
        """Whether the attempt after one that failed may do better: it begins with how symbols were found to be tied;
        those that values tell are positive, are taken for what they are in this call, or are none."""
        tied = self.sizes.tied()
        if tied:
            self.request = refined(self.request, tied)
        elif self.sizes.told and not self.positive:
            self.positive = True
        elif self.sizes.told:
            self.numeric = self.numeric if self.general else None
            self.general = False
        return bool(tied or self.sizes.told)

    def outline(self, found: Outline) -> None:
        """Call a function whole, or do not any more."""
        if found.why:
            self.conversions.put_back(found.code)
        elif not self.conversions.outline(found.code, outline.shim):
            found.why = "several functions run its code"
        else:                                    # what was learnt may be of this function
            self.numeric, self.learnt, self.general, self.positive = self.told, 0, True, False
        self.outlined[found.code] = found.why

    def learn_numbers(self) -> None:
        """What the last attempt needed the numbers of."""
        if self.sizes.pinned and self.numeric is not None:
            self.learnt += 1
            self.numeric = self.numeric | self.sizes.pinned if self.learnt < LEARNT else None

    def fork(self, site: Any, most: int = 2) -> None:
        """Give up on a region for a statement: of a loop for its first iteration, then for `most`, then for all."""
        written = self.forks.get(site, 0)
        self.forks[site] = written + 1 if written < most else sys.maxsize


class _Attempt:
    def __init__(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], grad: bool | None,
                 hooks: Sequence[Hook], plan: _Plan, roots: Sequence[Any] | None, alive: list[Any],
                 derivative: Derivative | None, absence: Any) -> None:
        self.fn = fn
        self.grad = grad
        self.hooks = hooks
        self.call = (tuple(args), dict(kwargs))
        self.leaves = pytree.tree_leaves(self.call)
        self.paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(self.call)[0]]
        self.roots = [fn, *self.leaves] if roots is None else list(roots)
        self.names = Names(self.roots)
        self.plan = plan
        plan.numbers = 0
        leaves = self.leaves

        def binding_of(binding: Binding) -> Any:          # not of `self`: no cycle keeps fakes alive
            return binding.resolve(leaves)

        self.tracer = Tracer(plan.flat, self.names.source, binding_of, plan.request, plan.numeric,
                             plan.general)
        plan.sizes, plan.tracer = self.tracer.sizes, weakref.ref(self.tracer)
        self.tracer.sizes.positive = plan.positive
        self.tracer.derivative = derivative
        self.tracer.absence = absence
        self.tracer.plan = plan
        self.tracer.identities.exact = plan.exact
        self.tracer.entries_of_loops.split = plan.split
        self.tracer.backward_hooks = BackwardHooks(self.tracer, plan.whole)
        self.tracer.can_convert = plan.conversions.can_convert
        self.tracer.can_wait = plan.conversions.can_wait
        for hook in hooks:
            watch = getattr(hook, "watch", None)
            if watch is not None:
                watch(self.tracer)
        self.tracer.memory.alive = alive
        self.tracer.graph.name = getattr(fn, "__name__", type(fn).__name__)

    def run(self) -> Captured:
        tracer = self.tracer
        snapshot = Snapshot(self.roots)
        torch.clear_autocast_cache()          # of casts of the real parameters, then of those of fakes
        try:
            with compat.quiet_fakes(), compat.without_saved_tensor_hooks(), cumulative_averages(), \
                    checks_of_values(tracer):
                captured = self._trace()
        except errors.MonographError as error:
            error.locate(blame.raised_by_user(error) or tracer.record.loc)
            raise
        finally:
            torch.clear_autocast_cache()
            tracer.draws.restore()
            marks = [snapshot.restore(), reset_tensors(tracer.entries)]
        for mark in marks:
            if mark is not None:
                raise errors.UnsupportedError(
                    f"the program {mark} while it runs",
                    why="it is put back, and nothing would do it again in later calls",
                    hint=BACKWARD if "gradient" in mark else "return the new value")
        return captured

    def _trace(self) -> Captured:
        tracer = self.tracer
        with torch.set_grad_enabled(torch.is_grad_enabled() or bool(self.grad)):
            args, kwargs = given = self._arguments()
            before, spec = pytree.tree_flatten(given)
            self.names.build()               # before the hooks, which would take it for reads of the user's code
            with tracer, UserMode(tracer), entered(RegionOperators(tracer, self.plan.forks)), ExitStack() as stack:
                stack.enter_context(lending(tracer))
                stack.enter_context(uncompiled())
                stack.enter_context(tracer.backward_hooks.watching())
                stack.enter_context(custom_vjp.watching(tracer))
                stack.enter_context(plain_ints(functools.partial(repeated, tracer)))
                stack.enter_context(compat.listing_fakes(tracer.mode, functools.partial(listed, tracer)))
                stack.enter_context(tracer.identities.hashing())
                stack.enter_context(told_classes())
                for hook in self.hooks:
                    stack.enter_context(hook)
                grad = torch.is_grad_enabled()
                result = self._call(args, kwargs)
                if torch.is_grad_enabled() != grad:
                    raise errors.UnsupportedError("the program changes the grad mode for what comes after it",
                                                  why="it is put back, and nothing would do it again in later calls",
                                                  hint="use it as a context manager")
                self._identify()
                after, changed = pytree.tree_flatten(given)
                if changed != spec or any(a is not b for a, b in zip(before, after, strict=True)):
                    raise errors.UnsupportedError("the program changes a list or dict that it was given",
                                                  why="the graph takes what is in it, not the container",
                                                  hint="return a new one instead")
                return self._seal(result)        # the user's code in the backward is watched as well

    def _rewriting(self, error: Exception) -> Any:
        """A statement of which one path may write what the backward needs, where `error` says that it is written."""
        if not compat.says_modified(error):
            return None
        return next((site for site in self.tracer.rewriting if self.plan.forks.get(site) != sys.maxsize), None)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the user's code. What is to start the trace again does so whatever that code makes of it."""
        forget()
        try:
            with compat.class_functions():
                return self.fn(*args, **kwargs)
        finally:
            waiting = self.plan.conversions.waiting
            again = Asked(waiting[0], self.tracer.refusal("a value")) if waiting else swallowed()
            raised = sys.exc_info()[1]
            if again is not None and (waiting or not isinstance(raised, Again)):
                raise again
            handled = None if isinstance(raised, (Again, errors.MonographError)) else caught()
            if handled is not None:
                raise handled

    def _identify(self) -> None:
        """Where one object stands for several, those who ask for identity are to be told: convert them."""
        tracer, plan = self.tracer, self.plan
        codes, is_reached = tracer.reached()
        twice = any(entry.source.kind == "argument" and is_reached(entry.real) for entry in tracer.entries)
        asking = [code for code in codes if asks(code)] if twice or tracer.identities.choices else []
        if plan.conversions.convert_all(asking):
            raise Seen
        if not plan.exact and any(map(plan.conversions.runs_as_written, asking)):
            plan.exact = True
            raise Seen

    def _arguments(self) -> tuple[Any, dict[str, Any]]:
        """The call's arguments with fakes for tensors, in containers of their own."""
        leaves, spec = pytree.tree_flatten(self.call, is_leaf=is_size)
        given, position = [], 0
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                path = argument_path(self.paths[position])
                leaf = self.tracer.enter(leaf, Source("argument", path), Binding("argument", leaf=position, path=path))
            elif type(leaf) is int and (argument_path(self.paths[position]), 0) in self.plan.request:
                leaf = self._symbol(leaf, position)
            elif is_one_way(leaf):
                leaf = OneWay(leaf, "argument")
            given.append(leaf)
            position += len(leaf) if is_size(leaf) else 1
        return pytree.tree_unflatten(given, spec)

    def _symbol(self, number: int, position: int) -> Any:
        """An integer among the arguments as a symbol: the size of a tensor that stands for it."""
        path = argument_path(self.paths[position])
        binding = Binding("argument", leaf=position, path=path, length=True)
        size = self.tracer.enter(of_length(number), Source("argument", path), binding).shape[0]
        return size if isinstance(size, torch.SymInt) else number

    def _seal(self, result: Any) -> Captured:
        tracer, joint = self.tracer, None
        tracer.record.loc = blame.location(blame.user_frame())
        tracer.draws.settle()
        tracer.seal_sizes()
        if tracer.sizes.assumed and not check_assumed(tracer):
            self.plan.numeric = None
            raise SizesDiffer(self.plan.request)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            seal = Seal(tracer, result)
            boundary = seal.run()
            new_histories(seal, boundary)
            new_requirements(seal, boundary)
            results = differentiable(seal, boundary)
        if results and self.grad is not False:
            try:
                joint = record_backward(tracer, seal, boundary, results)
            except errors.MonographError:
                raise
            except Exception as error:          # of the program's hooks and autograd.Functions, or what autograd finds
                site = self._rewriting(error)
                if site is not None:
                    raise Fork(site, str(error)) from error
                raise errors.RaisesInBackward(error) from error
        tracer.seal_sizes()
        custom_vjp.forget(tracer.graph)
        removed = remove_dead(tracer.graph)
        if joint is not None:
            joint.backward_start -= sum(position < joint.backward_start for position in removed)
        return Captured(tracer.graph, boundary, tracer.bindings, joint, list(tracer.gradients.values()),
                        list(tracer.sizes.lying.values()), tracer.sizes.asked,
                        bool(tracer.sizes.told),
                        frozenset(kind for kind in (type(entry.real) for entry in tracer.entries)
                                  if not compat.is_plain_class(kind)),
                        viewed=list(tracer.viewed.values()), refused=tracer.refused)


def argument_path(path: str) -> str:
    """`[0][1]['a']` -> `args[1]['a']`."""
    kind, rest = path[:3], path[3:]
    return ("args" if kind == "[0]" else "kwargs") + rest

