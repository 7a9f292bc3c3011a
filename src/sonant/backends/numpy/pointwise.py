"""The pointwise ops and step lists in NumPy: their exact meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sonant.program import steps as step_lists

Array = np.ndarray
_erf = np.frompyfunc(math.erf, 1, 1)


def sigmoid(x: Array) -> Array:
    y: Array = 0.5 * (np.tanh(0.5 * x) + 1)
    return y


def gelu_tanh(x: Array) -> Array:
    y: Array = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return y


def elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, x * slope)


def where(c: Array, a: Array, b: Array) -> Array:
    return np.where(c != 0, a, b)


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "minimum": np.minimum, "maximum": np.maximum,
    "greater": lambda a, b: a > b, "equal": lambda a, b: a == b,
    "atan2": np.arctan2, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)).astype(x.dtype)), "gelu_tanh": gelu_tanh,
    "elu": elu, "sqrt": np.sqrt, "abs": np.abs, "floor": np.floor, "round": np.rint, "leaky_relu": leaky_relu,
    "snake": lambda x, alpha: x + np.sin(alpha * x) ** 2 / alpha,
    "affine": lambda x, scale, shift: x * scale + shift,
    "where": where,
}


def run_steps(text: str, operands: Sequence[Array]) -> Array:
    """Register 0.. are `operands`; every step adds one; the last register is returned."""
    registers = list(operands)
    result = operands[0]
    for step in step_lists.parse(text):
        args = [result.dtype.type(a) if isinstance(a, float) else registers[a] for a in step.args]
        result = np.asarray(FUNCTIONS[step.op](*args)).astype(operands[0].dtype, copy=False)
        registers.append(result)
    return result
