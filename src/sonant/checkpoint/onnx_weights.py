"""Float weights out of an ONNX graph that onnxruntime's dynamic quantization made.

Quantized weights lose their names (`onnx::MatMul_6547`, `/encoder/F0.0/Mul_output_0`), so each is named by the node
that consumes it: module path + `.weight`, in torch's layout. What is recovered (w - zero_point) * scale:
- ConvInteger: per tensor, asymmetric; MatMulInteger: per output column, transposed to [N, C];
- DynamicQuantizeLSTM: one scale per direction; gates i,o,f,c become torch's i,f,g,o; one name per direction;
- DequantizeLinear after Gather: embeddings;
- float weights of Conv, ConvTranspose and MatMul as they are.
Float initializers that kept a module path (biases, norms) keep it. Which names a family wants is its own affair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np

from sonant.checkpoint.onnx import Node, OnnxModel
from sonant.checkpoint.tensor import Array, LazyTensor, Tensor
from sonant.errors import CheckpointError

_OP_SUFFIXES = ("Gemm_MatMul_quant", "MatMul_quant", "Conv_quant", "LSTM_quant", "ConvTranspose", "Conv", "MatMul")


def float_weights(model: OnnxModel) -> dict[str, LazyTensor]:
    """Module path → float32 tensor in torch's layout. CheckpointError if a quantized weight has no known consumer."""
    return _Recovery(model).run()


class _Recovery:
    def __init__(self, model: OnnxModel):
        self.where, self.nodes, self.initializers = model.where, model.nodes, model.initializers
        self.producer = {name: node for node in model.nodes for name in node.outputs}
        self.consumers: dict[str, list[Node]] = defaultdict(list)
        for node in model.nodes:
            for name in node.inputs:
                self.consumers[name].append(node)
        self.used: set[str] = set()
        self.found: dict[str, LazyTensor] = {}

    def run(self) -> dict[str, LazyTensor]:
        kinds: dict[str, Callable[[Node], None]] = {
            "ConvInteger": self.conv_integer,
            "MatMulInteger": self.matmul_integer,
            "DynamicQuantizeLSTM": self.lstm,
            "DequantizeLinear": self.embedding,
            "Conv": self.float_conv,
            "ConvTranspose": self.float_conv,
            "MatMul": self.float_matmul,
        }
        for node in self.nodes:
            if handler := kinds.get(node.op_type):
                handler(node)
        for name, tensor in self.initializers.items():
            # names with a slash or "::" are constants that the exporter folded, not parameters
            if tensor.dtype == "f32" and name not in self.used and "/" not in name and ":" not in name:
                self.put(name, LazyTensor.of(tensor))
        left = [n for n, t in self.initializers.items() if n not in self.used and t.dtype in ("i8", "u8")]
        if left:
            raise CheckpointError(
                f"{self.where}: quantized weights that no known node consumes: {', '.join(left[:10])}"
            )
        return self.found

    # -- one method for each kind of consumer --

    def conv_integer(self, node: Node) -> None:
        if (weight := self.claim(node, self.input(node, 1))) is not None:
            read = self.dequantized(node, weight, self.weight_scale(node), self.take(node, 3))
            self.put(_module_path(node) + ".weight", LazyTensor(weight.shape, read))

    def matmul_integer(self, node: Node) -> None:
        if (weight := self.claim(node, self.input(node, 1))) is not None:
            read = self.dequantized(node, weight, self.weight_scale(node), self.take(node, 3))
            self.put(_module_path(node) + ".weight", LazyTensor(weight.shape[::-1], lambda: read().T))

    def embedding(self, node: Node) -> None:
        gather = self.producer.get(self.input(node, 0))
        if gather is None or gather.op_type != "Gather":
            raise self.unexpected(node, "wanted the rows gathered from an embedding")
        name = self.input(gather, 0)
        if (weight := self.claim(node, name)) is not None:
            read = self.dequantized(node, weight, self.take(node, 1), self.take(node, 2))
            self.put(name.removesuffix("_quantized"), LazyTensor(weight.shape, read))

    def float_conv(self, node: Node) -> None:
        if (name := self.input(node, 1)) in self.initializers and (weight := self.claim(node, name)) is not None:
            self.put(_module_path(node) + ".weight", LazyTensor.of(weight))

    def float_matmul(self, node: Node) -> None:
        if (name := self.input(node, 1)) in self.initializers and (weight := self.claim(node, name)) is not None:
            self.put(_module_path(node) + ".weight", LazyTensor(weight.shape[::-1], lambda: weight.f32().T))

    def lstm(self, node: Node) -> None:
        """W [D, C, 4H], R [D, H, 4H], B [D, 8H] (input half, recurrent half)."""
        w, r, b = self.take(node, 1), self.take(node, 2), self.take(node, 3)
        w_scale, w_zero, r_scale, r_zero = (self.take(node, i) for i in range(8, 12))
        directions, hidden = r.shape[0], r.shape[1] if len(r.shape) == 3 else 0
        gates = 4 * hidden
        shapes_fit = len(w.shape) == 3 and w.shape[::2] == r.shape[::2] == (directions, gates)
        each = all(t.shape == (directions,) for t in (w_scale, w_zero, r_scale, r_zero))
        if not (shapes_fit and each) or b.shape != (directions, 2 * gates) or directions not in (1, 2):
            raise self.unexpected(node, f"W {w.shape}, R {r.shape}, B {b.shape} or their scales do not fit each other")
        path = _module_path(node)
        for d, suffix in enumerate(("", "_reverse")[:directions]):
            sources = {
                "weight_ih": (w.shape[1], partial(_lstm_weight, w, w_scale, w_zero, d)),
                "weight_hh": (hidden, partial(_lstm_weight, r, r_scale, r_zero, d)),
            }
            for name, (columns, read) in sources.items():
                self.put(f"{path}.{name}_l0{suffix}", LazyTensor((gates, columns), read))
            for i, name in enumerate(("bias_ih", "bias_hh")):
                self.put(f"{path}.{name}_l0{suffix}", LazyTensor((gates,), partial(_lstm_bias, b, d, i)))

    # -- looking things up --

    def unexpected(self, node: Node, what: str) -> CheckpointError:
        return CheckpointError(f"{self.where}: node {node.name!r} ({node.op_type}): {what}; this export is not known")

    def put(self, name: str, tensor: LazyTensor) -> None:
        if name in self.found:
            raise CheckpointError(f"{self.where}: two different weights are both {name!r}")
        self.found[name] = tensor

    def input(self, node: Node, index: int) -> str:
        return node.inputs[index] if index < len(node.inputs) else ""

    def claim(self, node: Node, name: str) -> Tensor | None:
        """The initializer `name`, or None where an earlier node took it (ALBERT's layers share theirs)."""
        if name in self.used:
            return None
        if name not in self.initializers:
            raise self.unexpected(node, f"the weight {name!r} is not a constant")
        self.used.add(name)
        return self.initializers[name]

    def take(self, node: Node, index: int) -> Tensor:
        name = self.input(node, index)
        if name not in self.initializers:
            raise self.unexpected(node, f"input {index} ({name!r}) is not a constant")
        self.used.add(name)
        return self.initializers[name]

    def dequantized(self, node: Node, weight: Tensor, scale: Tensor, zero: Tensor) -> Callable[[], Array]:
        """A reader of (weight - zero) * scale; scale and zero are scalars or one for each last-axis column."""
        allowed = ((), (1,), weight.shape[-1:])
        if not weight.shape or scale.shape not in allowed or zero.shape not in allowed:
            raise self.unexpected(node, f"weight {weight.shape}, scale {scale.shape}, zero point {zero.shape}")
        return lambda: (weight.f32() - zero.f32()) * scale.f32()

    def weight_scale(self, node: Node) -> Tensor:
        """After an integer product comes [Add bias,] Cast, Mul by (activation scale * weight scale)."""
        value = node.outputs[0]
        for _ in range(4):
            following = self.consumers.get(value, [])
            if not following:
                break
            after = following[0]
            if after.op_type == "Mul":
                both = [self.producer.get(name) for name in after.inputs if name != value]
                product = both[0] if both else None
                scales = [n for n in product.inputs if n in self.initializers] if product is not None else []
                if len(scales) == 1 and product is not None and product.op_type == "Mul":
                    self.used.add(scales[0])
                    return self.initializers[scales[0]]
                break
            value = after.outputs[0]
        raise self.unexpected(node, "no multiplication by its weight scale follows")


def _module_path(node: Node) -> str:
    """`/encoder/F0.0/conv1/Conv_quant` → `encoder.F0.0.conv1`."""
    parts = node.name.strip("/").split("/")
    if parts[-1] in _OP_SUFFIXES:
        parts.pop()
    return ".".join(parts)


def _torch_gates(array: Array) -> Array:
    """Rows i,o,f,c (ONNX) → i,f,g,o (torch), where c and g are the same gate."""
    i, o, f, c = np.split(array, 4, axis=0)
    return np.concatenate([i, f, c, o])


def _lstm_weight(weight: Tensor, scale: Tensor, zero: Tensor, direction: int) -> Array:
    values = (weight.array[direction].astype(np.float32) - zero.f32()[direction]) * scale.f32()[direction]
    return _torch_gates(values.T)


def _lstm_bias(bias: Tensor, direction: int, half: int) -> Array:
    return _torch_gates(np.split(bias.f32()[direction], 2)[half])
