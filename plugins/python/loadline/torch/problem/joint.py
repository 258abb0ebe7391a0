"""Reads a joint graph by storages: which nodes compute, and what they read and make.

A joint graph is one training step as AOT autograd traces it: forward and backward in one
list of nodes. Memory belongs to storages, so a view and its base are one value here. The
value is named by the first node whose result has that storage: its root. Tested by
tests/plugins/python/torch_step_test.py.
"""
from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import torch
from loadline.errors import Unsupported
from loadline.torch.compat import torch_internals

aten = torch.ops.aten

# They alias their input, although their schema says otherwise.
_UNSAFE_VIEWS = {aten._unsafe_view.default, aten.lift_fresh.default}

# Their kernels reduce in place, so the mean keeps the storage of all elements, which the
# trace does not show. Found by the ledger (Ledger.surprises).
_LOSSES = {aten.mse_loss.default, aten.smooth_l1_loss.default,
           aten.binary_cross_entropy.default, aten.soft_margin_loss.default}

# Its kernel resizes what it allocates as large as its operand.
_RESIZED = {aten.col2im.default}

# Whose operators are tagged if they draw random numbers, or never do.
_TAGGED = {"aten", "prims", "prim", "_c10d_functional", "c10d_functional", "loadline",
           "torchvision"}

# Training batch norm that also returns new running statistics. Only those depend on the
# old ones, so a second run does not need the graph's (module_body.py).
BATCH_NORM = aten._native_batch_norm_legit_functional.default


@dataclasses.dataclass
class Operation:
    """A node that computes. Views and elements of a tuple are no operations."""

    node: torch.fx.Node
    reads: list[torch.fx.Node]  # roots of values, each once
    makes: list[torch.fx.Node | int]  # roots; int: a tuple's element that nobody reads
    element_bytes: list[int]  # of each value in makes
    updates: torch.fx.Node | None = None  # the graph's input that copy_ writes to
    backward: bool = False  # depends on a tangent
    repeatable: bool = True
    ordered: bool = False  # random or with an effect: these keep their order
    random: bool = False
    # The user's checkpoint does not keep its result, so the backward computes it again.
    dropped: bool = False
    # Operations fused into its kernel, in order. Nothing else reads their results, which
    # are never in memory (fuse.py).
    inner: tuple[Operation, ...] = ()
    # Its kernel may write the result over an operand.
    in_place: bool = False

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def nodes(self) -> list[torch.fx.Node]:
        """All nodes of its kernel, in order."""
        return [*(operation.node for operation in self.inner), self.node]


@dataclasses.dataclass
class Joint:
    module: torch.fx.GraphModule
    primals: list[torch.fx.Node]
    tangents: list[torch.fx.Node]
    constants: list[torch.fx.Node]
    operations: list[Operation]
    root: dict[torch.fx.Node, torch.fx.Node]  # the value of every node with memory
    bytes: dict[torch.fx.Node, int]  # of every value
    forward_outputs: list[torch.fx.Node]  # values
    backward_outputs: list[torch.fx.Node]
    num_forward_outputs: int

    @property
    def graph(self) -> torch.fx.Graph:
        return self.module.graph

    def keep(self, values: Iterable[torch.fx.Node]) -> None:
        """Forbids computing these values again."""
        kept = set(values)
        for operation in self.operations:
            if kept & {*operation.makes}:
                operation.repeatable = operation.dropped = False


def clean(module: torch.fx.GraphModule) -> None:
    """Removes dead code and common subexpressions, as PyTorch's partitioner would later,
    because the plan names nodes that must not change. The planner may still compute a
    shared value twice."""
    module.graph.eliminate_dead_code()
    module.graph = torch_internals.fx_graph_cse(module.graph)
    module.recompile()


def storage_bytes(tensor: torch.Tensor) -> int:
    bytes_ = tensor.untyped_storage().nbytes()
    if not isinstance(bytes_, int):
        if torch_internals.depends_on_data(bytes_):
            raise Unsupported(
                "a tensor's size follows from the values of another, as with nonzero or a "
                "boolean mask, so nobody knows its bytes beforehand: use a fixed size, such "
                "as torch.where or a capacity for each expert")
        raise Unsupported(
            "tensor sizes are symbolic: compile with dynamic=False, so that each size "
            "gets its own plan")
    return bytes_


def _check_layout(node: torch.fx.Node) -> None:
    for value in torch_internals.pytree.tree_leaves(node.meta.get("val")):
        if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
            raise Unsupported(
                f"{node.name} has the layout {value.layout}, so its bytes follow from its "
                "values. If it is the gradient of an embedding, use sparse=False")


def _extent_bytes(tensor: torch.Tensor) -> int:
    """Of a storage with this tensor alone."""
    whole = storage_bytes(tensor)  # raises for symbolic sizes
    if not tensor.numel():
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return min(whole, (last + 1) * tensor.element_size())


def result_bytes(node: torch.fx.Node) -> int:
    """Of all storages of the node's result, including those of its inputs."""
    tensors = [value for value in torch_internals.pytree.tree_leaves(
        node.meta.get("val")) if isinstance(value, torch.Tensor)]
    if node.target in _RESIZED or node.target in _LOSSES and tensors[0].dim() == 0:
        return max(storage_bytes(argument.meta["val"])
                   for argument in node.all_input_nodes)
    if node.target is aten.copy.default:  # a clone of the whole storage that is written
        written = node.args[0]
        assert isinstance(written, torch.fx.Node)
        return storage_bytes(written.meta["val"])
    return sum({torch_internals.storage_key(tensor): storage_bytes(tensor)
                for tensor in tensors}.values())


def computing(node: torch.fx.Node) -> torch.fx.Node:
    """The node that makes the tuple, if this is an element of one, else the node."""
    while node.target is operator.getitem:
        node = node.args[0]  # type: ignore[assignment]
    return node


def is_view(node: torch.fx.Node) -> bool:
    target = node.target
    return target in _UNSAFE_VIEWS or torch_internals.is_view(target)


def _tags(node: torch.fx.Node) -> set[Any]:
    return set(getattr(node.target, "tags", ()))


def _says_it_draws(node: torch.fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in _tags(node)


def may_draw(operator_: Any) -> bool:
    """Whether an OpOverload says that it draws, or is one of others, who need not say so."""
    return torch.Tag.nondeterministic_seeded in operator_.tags or (
        operator_.namespace not in _TAGGED)


def inner_calls(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The calls in functions that the node calls, such as a branch of torch.cond."""
    owner = node.graph.owning_module
    called = [] if owner is None else [
        getattr(owner, one.target, None) for one in node.all_input_nodes
        if one.op == "get_attr" and isinstance(one.target, str)]
    for one in called:
        if isinstance(one, torch.fx.GraphModule):
            yield from (inner for inner in one.graph.nodes
                        if inner.op in ("call_function", "call_method"))


def is_seeded(node: torch.fx.Node) -> bool:
    """Whether the operator can draw random numbers, or a function that it calls, such as a
    branch of torch.cond."""
    if isinstance(node.target, torch_internals.OpOverload):
        return may_draw(node.target)
    return any(is_seeded(inner) for inner in inner_calls(node) if inner.op == "call_function")


def draws(node: torch.fx.Node) -> bool:
    """Whether the node draws random numbers; attention with dropout_p=0 does not."""
    if not is_seeded(node):
        return False
    schema = getattr(node.target, "_schema", None)
    for at, argument in enumerate(schema.arguments if schema else ()):
        if argument.name == "dropout_p":
            given = node.args[at] if at < len(node.args) else node.kwargs.get(
                argument.name, argument.default_value)
            return bool(given != 0)
    return True


def _has_effect(node: torch.fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    # PyTorch calls a random operator impure too.
    return ((node.is_impure() and not _says_it_draws(node))
            or (schema is not None and schema.is_mutable)
            or getattr(node.target, "namespace", "") in (
                "_c10d_functional", "c10d_functional"))


class _Reader:
    def __init__(self, module: torch.fx.GraphModule, num_forward_outputs: int,
                 found_bytes: Mapping[str, int]):
        self.module = module
        self.found_bytes = found_bytes
        self.joint = Joint(module, [], [], [], [], {}, {}, [], [],
                           num_forward_outputs)
        self.root_of_storage: dict[int, torch.fx.Node] = {}
        self.element_of: dict[torch.fx.Node, dict[int, torch.fx.Node]] = {}
        self.backward: set[torch.fx.Node] = set()

    def read(self) -> Joint:
        for node in self.module.graph.nodes:
            _check_layout(node)
            if node.op == "placeholder":
                self.placeholder(node)
            elif node.op == "get_attr":
                if isinstance(node.meta.get("val"), torch.Tensor):
                    self.new_value(node, node.meta["val"])
                    self.joint.constants.append(node)
            elif node.op == "call_function":
                self.function(node)
            elif node.op == "output":
                self.outputs(node)
            else:
                raise Unsupported(f"{node.format_node()}: not of a joint graph")
        if self.joint.tangents and not self.joint.backward_outputs:
            raise Unsupported("PyTorch traced no backward pass: no input of the graph has "
                              "a gradient")
        self.drop_dead()
        self.keep_what_leaves()
        return self.joint

    def new_value(self, node: torch.fx.Node, tensor: torch.Tensor) -> None:
        key = torch_internals.storage_key(tensor)
        root = self.root_of_storage.setdefault(key, node)
        self.joint.root[node] = root
        self.joint.bytes.setdefault(root, storage_bytes(tensor))

    def placeholder(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            if isinstance(value, (torch.SymInt, torch.SymFloat)):
                raise Unsupported(
                    f"input {node.name} is a symbolic size, as the lengths in a nested "
                    "tensor are: pad to fixed sizes, and compile with dynamic=False")
            if value is not None and not isinstance(value, (int, float, bool)):
                raise Unsupported(
                    f"input {node.name} is a {type(value).__name__} and not a tensor")
            return
        if "tangents" in str(node.target):
            # Traced as views where outputs are views of one storage; autograd delivers
            # a tensor for each.
            self.joint.root[node] = node
            self.joint.bytes[node] = _extent_bytes(value)
            self.joint.tangents.append(node)
            self.backward.add(node)
        else:
            self.new_value(node, value)
            self.joint.primals.append(node)

    def function(self, node: torch.fx.Node) -> None:
        if any(argument in self.backward for argument in node.all_input_nodes):
            self.backward.add(node)
        value = node.meta.get("val")
        root = self.joint.root
        if node.target is operator.getitem:
            self.getitem(node)
        elif is_view(node):
            base = node.args[0]
            assert isinstance(base, torch.fx.Node)
            root[node] = root[base]  # also for a list of views
        elif isinstance(value, torch.Tensor):
            self.tensor(node, value)
        elif isinstance(value, (tuple, list)):
            self.tuple(node, value)
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise Unsupported(
                f"{node.name} computes a symbolic size: compile with dynamic=False")
        else:  # an assertion and the like
            self.add(node, [], [])

    def tensor(self, node: torch.fx.Node, value: torch.Tensor) -> None:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            written = node.args[0]
            assert isinstance(written, torch.fx.Node)
            if node.target is not aten.copy_.default or (
                    self.joint.root[written] not in self.joint.primals):
                raise Unsupported(f"{node.name} writes in place ({node.target})")
            # Its result is the input itself.
            self.joint.root[node] = self.joint.root[written]
            self.add(node, [], [], self.joint.root[written])
            return
        if torch_internals.storage_key(value) in self.root_of_storage:
            self.joint.root[node] = self.root_of_storage[
                torch_internals.storage_key(value)]
            return  # an alias under another name
        self.new_value(node, value)
        self.joint.bytes[node] = self.found_bytes.get(node.name,
                                                      result_bytes(node))
        self.add(node, [node], [self.joint.bytes[node]])

    def tuple(self, node: torch.fx.Node, value: Any) -> None:
        views = {self.root_of_storage.get(torch_internals.storage_key(element))
                 for element in value if isinstance(element, torch.Tensor)}
        if len(views) == 1 and (base := views.pop()) is not None:
            self.joint.root[node] = base  # a list of views, as unsafe_split makes
            return
        elements: dict[int, torch.fx.Node] = {}
        for user in node.users:
            if user.target is not operator.getitem:
                raise Unsupported(f"{user.name} reads the tuple {node.name} whole")
            index = user.args[1]
            assert isinstance(index, int)
            elements.setdefault(index, user)
        self.element_of[node] = elements
        makes: list[torch.fx.Node | int] = []
        sizes = []
        for index, element in enumerate(value):
            if not isinstance(element, torch.Tensor):
                continue
            if torch_internals.storage_key(element) in self.root_of_storage:
                continue
            bytes_ = storage_bytes(element)
            if index in elements:
                self.new_value(elements[index], element)
                bytes_ = self.found_bytes.get(elements[index].name, bytes_)
                self.joint.bytes[elements[index]] = bytes_
            makes.append(elements.get(index, index))
            sizes.append(bytes_)
        self.add(node, makes, sizes)

    def getitem(self, node: torch.fx.Node) -> None:
        parent, index = node.args
        assert isinstance(parent, torch.fx.Node)
        assert isinstance(index, int)
        root = self.joint.root
        if parent in root:  # a list of views
            root[node] = root[parent]
        elif isinstance(node.meta.get("val"), torch.Tensor):
            first = self.element_of[parent][index]
            key = torch_internals.storage_key(node.meta["val"])
            root[node] = root.get(first) or self.root_of_storage[key]

    def add(self, node: torch.fx.Node, makes: list[torch.fx.Node | int],
            sizes: list[int], updates: torch.fx.Node | None = None) -> None:
        arguments = node.all_input_nodes
        only_once = _has_effect(node) or torch_internals.must_save(node)
        if node.target is BATCH_NORM:
            # Those of an earlier call of the same layer are no inputs of the graph.
            statistics = [a for a in node.args[3:5]
                          if isinstance(a, torch.fx.Node) and a.op == "placeholder"]
            arguments = [a for a in arguments if a not in statistics]
            only_once = node.args[1] is None
        reads = list(dict.fromkeys(
            self.joint.root[a] for a in arguments if a in self.joint.root))
        self.joint.operations.append(Operation(
            node, reads, makes, sizes, updates,
            backward=node in self.backward,
            repeatable=not only_once,
            ordered=draws(node) or _has_effect(node),
            random=draws(node),
            dropped=node not in self.backward and not only_once
            and torch_internals.must_recompute(node)))

    def outputs(self, node: torch.fx.Node) -> None:
        flat = torch_internals.pytree.tree_leaves(node.args[0])
        split = self.joint.num_forward_outputs
        for group, leaves in ((self.joint.forward_outputs, flat[:split]),
                              (self.joint.backward_outputs, flat[split:])):
            group.extend(dict.fromkeys(
                self.joint.root[leaf] for leaf in leaves
                if isinstance(leaf, torch.fx.Node) and leaf in self.joint.root))

    def keep_what_leaves(self) -> None:
        """A user's checkpoint recomputes values inside of it. For those that the forward
        returns, or reads outside, the plan decides."""
        leaving = set(self.joint.forward_outputs)
        for node in self.module.graph.nodes:
            for user in node.users:
                if node in self.joint.root and user not in self.backward and (
                        torch_internals.region(computing(user))
                        != torch_internals.region(computing(node))):
                    leaving.add(self.joint.root[node])
        for operation in self.joint.operations:
            if leaving & {*operation.makes}:
                operation.dropped = False

    def drop_dead(self) -> None:
        """Drops operations without an effect that no output needs."""
        needed = {*self.joint.forward_outputs, *self.joint.backward_outputs}
        kept = []
        for operation in reversed(self.joint.operations):
            if operation.ordered or operation.updates or any(
                    made in needed for made in operation.makes):
                kept.append(operation)
                needed.update(operation.reads)
        self.joint.operations = kept[::-1]


def read_joint(module: torch.fx.GraphModule, num_forward_outputs: int,
               found_bytes: Mapping[str, int] = MappingProxyType({})) -> Joint:
    """Raises Unsupported for a graph that cannot be planned.

    found_bytes: by node name, the measured bytes of its result, if the trace is wrong."""
    return _Reader(module, num_forward_outputs, found_bytes).read()
