"""From what a trace read to the guard of its program.

    facts -> what is fetched at every call (tensors that the program replaces, or that objects among the arguments hold)
          +  what is compared: words of memory, else one generated check over facts, arguments, weights, sizes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from monograph import compat
from monograph.capture.captured import Binding, Captured
from monograph.capture.guards import Fact, Guard, TensorFacts, generate, sharing
from monograph.capture.guards_arguments import Arguments
from monograph.capture.guards_sizes import SizeFacts
from monograph.capture.guards_versions import watched
from monograph.capture.objects import NONE, Objects, apart, find_objects, mentions
from monograph.capture.readset import ReadSet
from monograph.capture.readset_effects import Traced
from monograph.ir.boundary import Literal
from monograph.ir.op import Effect
from monograph.watched_weights import watching

__all__ = ["below_classes", "guarded"]


def guarded(facts: Sequence[Fact], captured: Captured, traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any],
            ) -> tuple[Captured, Guard]:
    """The guard of a program that rests on `facts`; inputs that are fetched anew at every call follow the leaves of the
    arguments."""
    reads, leaves = traced.reads, pytree.tree_leaves((args, kwargs))
    objects = _objects(facts, leaves, captured, reads)
    fetched, compared = _fetched(facts, traced, captured, objects)
    captured = _rebind(captured, fetched, len(leaves))
    captured.objects.update(objects.positions(len(leaves) + len(fetched)))
    return captured, _guard(compared, fetched, captured, reads, args, kwargs, objects)


def _objects(facts: Sequence[Fact], leaves: Sequence[Any], captured: Captured, reads: ReadSet) -> Objects:
    """Objects among the arguments that may be others in each call, where nothing of the program is about these very
    ones."""
    if reads.messages or any("id" in code.co_names for code in reads.functions.codes.values()):
        return NONE                          # a text or a number may name one
    objects = find_objects(facts, leaves, reads.met_once, [value for value, _ in reads.known.values()])
    mine = {id(fact.want) for fact in objects.fetched}
    outer = [tensor for tensor, _ in reads.tensors.values()]
    outer += [binding.tensor for binding in captured.bindings if binding.tensor is not None]
    outer = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)] + [
        tensor for tensor in outer if id(tensor) not in mine]
    if not all(map(compat.is_plain, outer)) or not apart([fact.want for fact in objects.fetched], outer):
        return NONE
    if any(id(tensor) in mine for tensor, _ in captured.gradients):
        return NONE
    held = [result.value for result in captured.boundary.results
            if isinstance(result, Literal) and not reads.existed(result.value)]
    held += [value for node in captured.graph.walk() if Effect.HOST in node.op.effects
             for value in node.attributes.values()]
    return NONE if any(mentions(value, objects.steps) for value in held) else objects


def _fetched(facts: Sequence[Fact], traced: Traced, captured: Captured, objects: Objects,
             ) -> tuple[list[Fact], list[Fact]]:
    """Places whose tensor the program replaces at every call (`self.state = new`): read anew, not compared.

    One fact per tensor, and the facts that are left to compare.
    """
    places = {(id(change.container), id(change.before)) for change in traced.changes
              if isinstance(change.before, torch.Tensor) and isinstance(change.container, dict)}
    found = {id(fact.want): fact for fact in objects.fetched}
    compared = []
    for fact in facts:
        if found.get(id(fact.want)) is fact:
            continue
        if fact.test == "same" and fact.objects and (id(fact.objects[0]), id(fact.want)) in places:
            found.setdefault(id(fact.want), fact)
        else:
            compared.append(fact)
    inputs = {id(binding.tensor) for binding in captured.bindings if binding.kind == "tensor"}
    for change in traced.changes:       # written on one path only, read by nobody: the other keeps what is there
        if id(change.before) in inputs and isinstance(change.container, dict) and isinstance(change.key, (str, int)):
            found.setdefault(id(change.before), Fact(
                change.path, f"{{0}}[{change.key!r}]", (change.container,), "same", change.before))
    return list(found.values()), compared


def _rebind(captured: Captured, fetched: Sequence[Fact], leaves: int) -> Captured:
    """Inputs that are read anew follow the leaves of the arguments."""
    numbers = {id(fact.want): leaves + i for i, fact in enumerate(fetched)}
    if not numbers:
        return captured
    bindings = [
        Binding("argument", leaf=numbers[id(binding.tensor)], path=binding.path, flat=binding.flat)
        if binding.kind == "tensor" and id(binding.tensor) in numbers else binding
        for binding in captured.bindings
    ]
    return replace(captured, bindings=bindings)


@compat.no_class_functions()
def _guard(facts: list[Fact], fetched: list[Fact], captured: Captured, reads: ReadSet,
           args: tuple[Any, ...], kwargs: dict[str, Any], objects: Objects) -> Guard:
    # Of a tensor that no program takes in (nested, sparse, a subclass) it is enough to be the same object.
    tensors = {key: entry for key, entry in reads.tensors.items() if compat.is_plain(entry[0])}
    for binding in captured.bindings:
        if binding.tensor is not None:
            tensors.setdefault(id(binding.tensor), (binding.tensor, binding.path))
    for fact in fetched:
        tensors.pop(id(fact.want), None)
    overlap = bool(captured.boundary.writes or captured.boundary.relayouts) or any(b.flat for b in captured.bindings)
    weights, labels = zip(*tensors.values()) if tensors else ((), ())
    # What the journal watches is as it was read. A fact elsewhere that the trace itself made false cannot be kept.
    leaves = len(pytree.tree_leaves((args, kwargs)))
    facts = [*facts, *_sizes(captured, fetched, leaves), *_gradients(captured, args, kwargs)[0]]
    facts = [fact for fact in facts if all(map(reads.journal.is_watched, fact.watch)) and fact.watch or fact.holds()]
    tags, others = watched([fact for fact in facts if not objects.concerns(fact)])
    others = [*others, *filter(objects.concerns, facts)]
    whole = [binding.leaf for binding in _whole(captured) if 0 <= binding.leaf < leaves]
    sizes = _size_facts(captured, fetched, leaves)
    arguments = Arguments(args, kwargs, overlap=overlap, bound=weights, whole=whole,
                          gradients=_gradients(captured, args, kwargs)[1], sizes=sizes, objects=objects.leaves,
                          attributes={leaf: found for leaf, found in reads.of_tensors.arguments.items()
                                      if leaf < leaves},
                          rewritten=[captured.bindings[input].leaf for input in captured.boundary.rewritten],
                          viewed=_viewed(captured, args, kwargs), standing=captured.refused)
    weight_facts = TensorFacts(weights, labels) if weights else None
    weights_hold = _weights_hold(weights, weight_facts, arguments, overlap) if weight_facts is not None else None
    guard = generate(others, arguments, weights, weight_facts, weights_hold, fetched,
                     tags.check if tags is not None else None, sizes, objects if objects.steps else None)
    if captured.classes:
        guard.check = below_classes(guard.check)
    guard.facts = facts
    lines = {id(fact): reads.lines.get(key) for key, fact in reads.facts.items()}
    guard.lines = {id(fact): loc for fact in facts if (loc := lines.get(id(fact))) is not None}
    return guard


def _weights_hold(weights: Sequence[torch.Tensor], facts: TensorFacts, arguments: Arguments, writes: bool,
                  ) -> Callable[[], bool]:
    """The check of the weights. A program that `writes`, or may read one through another, was made for those that
    share memory with each other; and what arguments share with them is asked of where they lie now."""
    shared = sharing(weights)
    if not shared and not writes:
        return watching(weights, lambda: facts.check(*weights))

    def hold() -> bool:
        if not facts.check(*weights) or sharing(weights) != shared:
            return False
        arguments.lie(weights)
        return True

    return watching(weights, hold, storages=True)


def _size_facts(captured: Captured, fetched: Sequence[Fact], leaves: int) -> SizeFacts | None:
    """What the program takes for granted of sizes that are symbols."""
    if not captured.lying:
        return None
    bindings = {binding.path: binding for binding in captured.bindings if binding.kind == "argument"}
    numbers = {path: binding.leaf for path, binding in bindings.items()}
    lying = {numbers[tensor.path]: tensor for tensor in captured.lying}
    labels = {leaf: tensor.path if leaf < leaves else fetched[leaf - leaves].label for leaf, tensor in lying.items()}
    integers = frozenset(binding.leaf for binding in bindings.values() if binding.length and binding.leaf in lying)
    return SizeFacts(lying, captured.asked, labels, integers)


def _gradients(captured: Captured, args: Any, kwargs: Any) -> tuple[list[Fact], dict[int, torch.Tensor | None]]:
    """Whose `.grad` the program read: as facts, and for arguments by leaf."""
    leaves = {id(leaf): position for position, leaf in enumerate(pytree.tree_leaves((args, kwargs)))}
    paths = {id(binding.tensor): binding.path for binding in captured.bindings}
    facts, positions = [], {}
    for tensor, gradient in captured.gradients:
        if id(tensor) in leaves:
            positions[leaves[id(tensor)]] = gradient
        else:
            label = f"gradient of {paths.get(id(tensor)) or 'a tensor'}"
            facts.append(Fact(label, "{0}.grad", (tensor,), "is", gradient))
    return facts, positions


def _viewed(captured: Captured, args: Any, kwargs: Any) -> list[int]:
    viewed = set(map(id, captured.viewed))
    return [position for position, leaf in enumerate(pytree.tree_leaves((args, kwargs))) if id(leaf) in viewed]


def _whole(captured: Captured) -> list[Binding]:
    """The inputs of whose storage the program sees all: its size is part of what the program is made for."""
    grown = {write.input for write in captured.boundary.writes if write.grown}
    return [binding for i, binding in enumerate(captured.bindings) if binding.flat or i in grown]


def _sizes(captured: Captured, fetched: Sequence[Fact], leaves: int) -> list[Fact]:
    """The sizes of storages behind inputs that are not arguments."""
    found = []
    for binding in _whole(captured):
        if binding.tensor is not None:
            place = Fact(binding.path, "{0}", (binding.tensor,), want=binding.tensor)
        elif binding.leaf >= leaves:
            place = fetched[binding.leaf - leaves]
        else:
            continue
        found.append(Fact(f"memory behind {place.label}", f"{place.expression}.untyped_storage().nbytes()",
                          place.objects, "same", compat.storage_size(place.want)))
    return found


def below_classes(call: Callable[..., Any]) -> Callable[..., Any]:
    """What the classes of tensors say of ops is in the program; asked for it again, they would run their code."""
    def below_classes(*given: Any) -> Any:
        with compat.no_class_functions():
            return call(*given)

    return below_classes
