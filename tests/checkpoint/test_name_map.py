"""Strict name maps: patterns, layouts, weight norm, and what the one error lists."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sonant.checkpoint.name_map import (
    ConstantRule,
    TensorSpec,
    check_shapes,
    compile_pattern,
    fold_weight_norm,
    map_tensors,
    rename,
)
from sonant.checkpoint.tensor import LazyTensor, Tensor
from sonant.errors import CheckpointError

RNG = np.random.default_rng(5)


def lazy(**arrays: np.ndarray) -> dict[str, LazyTensor]:
    return {
        name.replace("__", "."): LazyTensor.of(Tensor(np.asarray(array, np.float32), "f32"))
        for name, array in arrays.items()
    }


def mapped(specs, source, **more):
    return dict(map_tensors(specs, source, "model.pth", **more))


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "name", "matches"),
        [
            ("a.{i}.b", "a.0.b", True),
            ("a.{i}.b", "a.0.1.b", False),
            ("a.{i*}.b", "a.0.1.b", True),
            ("a.{i}.a.{i}", "a.3.a.3", True),
            ("a.{i}.a.{i}", "a.3.a.4", False),
            ("a.b", "axb", False),
            ("a.b", "a.b", True),
            ("{i}.weight", ".weight", False),
        ],
    )
    def test_match(self, pattern, name, matches):
        assert bool(compile_pattern(pattern).fullmatch(name)) is matches

    def test_rename_in_order(self):
        rules = (("{half}.{path*}", "{path}"), ("N.{path*}", "predictor.N.{path}"))
        assert rename("encoder.N.0.weight", rules) == "predictor.N.0.weight"
        assert rename("plain", rules) == "plain"


class TestLayouts:
    def test_conv1d(self):
        w = RNG.normal(size=(4, 3, 5))  # [N, C, K]
        found = mapped({"w": TensorSpec((4, 5, 3), "conv1d")}, lazy(w=w))["w"]
        assert found.flags.c_contiguous
        assert found[1, 4, 2] == np.float32(w[1, 2, 4])

    def test_conv_transpose1d(self):
        w = RNG.normal(size=(3, 4, 5))  # torch [C, N, K]
        found = mapped({"w": TensorSpec((4, 5, 3), "conv_transpose1d")}, lazy(w=w))["w"]
        assert found[1, 4, 2] == np.float32(w[2, 1, 4])

    def test_depthwise_conv_transpose1d(self):
        w = RNG.normal(size=(6, 1, 3))
        found = mapped({"w": TensorSpec((6, 3, 1), "conv_transpose1d", groups=6)}, lazy(w=w))["w"]
        np.testing.assert_array_equal(found[:, :, 0], w[:, 0].astype(np.float32))

    def test_grouped_conv_transpose1d_does_what_torch_does(self):
        """Two groups side by side are two transposed convolutions."""
        w = RNG.normal(size=(6, 2, 3))  # C = 6, N / groups = 2
        found = mapped({"w": TensorSpec((4, 3, 3), "conv_transpose1d", groups=2)}, lazy(w=w))["w"]
        for group in range(2):
            part = w[3 * group : 3 * group + 3].transpose(1, 2, 0)
            np.testing.assert_array_equal(found[2 * group : 2 * group + 2], part.astype(np.float32))

    def test_channels(self):
        found = mapped({"a": TensorSpec((3,), "channels")}, lazy(a=np.ones((1, 3, 1))))
        assert found["a"].shape == (3,)

    def test_lstm(self):
        h, c = 2, 3
        parts = {
            f"l__{kind}_l0{suffix}": RNG.normal(size=(4 * h, n) if n else (4 * h,)).astype(np.float32)
            for suffix in ("", "_reverse")
            for kind, n in (("weight_ih", c), ("weight_hh", h), ("bias_ih", 0), ("bias_hh", 0))
        }
        specs = {
            "l.w_ih": TensorSpec((2, 4 * h, c), "lstm_w_ih"),
            "l.w_hh": TensorSpec((2, 4 * h, h), "lstm_w_hh"),
            "l.bias": TensorSpec((2, 4 * h), "lstm_bias"),
        }
        found = mapped(specs, lazy(**parts))
        for d, suffix in enumerate(("", "_reverse")):
            np.testing.assert_array_equal(found["l.w_ih"][d], parts[f"l__weight_ih_l0{suffix}"])
            np.testing.assert_array_equal(found["l.w_hh"][d], parts[f"l__weight_hh_l0{suffix}"])
            wanted = parts[f"l__bias_ih_l0{suffix}"] + parts[f"l__bias_hh_l0{suffix}"]
            np.testing.assert_array_equal(found["l.bias"][d], wanted)


class TestWeightNorm:
    V, G = RNG.normal(size=(4, 3, 5)).astype(np.float32), RNG.normal(size=(4, 1, 1)).astype(np.float32)
    WANTED = G.astype(np.float64) * V / np.linalg.norm(V.astype(np.float64).reshape(4, -1), axis=1)[:, None, None]

    def test_fold(self):
        found = fold_weight_norm(self.V, self.G)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, self.WANTED, rtol=1e-7)

    def test_zero_rows_give_zero(self):
        v = self.V.copy()
        v[1] = 0
        g = self.G.copy()
        g[2] = 0
        found = fold_weight_norm(v, g)
        assert not found[1].any()
        assert not found[2].any()
        assert np.isfinite(found).all()

    def test_tiny_and_huge_rows(self):
        """float32 would underflow or overflow in the sum of squares."""
        v = np.array([[1e-30, 1e-30], [1e30, 1e30]], np.float32)
        np.testing.assert_allclose(fold_weight_norm(v, np.ones((2, 1))), np.full((2, 2), 0.5**0.5), rtol=1e-6)

    @pytest.mark.parametrize(
        ("v_name", "g_name"),
        [
            ("weight_v", "weight_g"),
            ("parametrizations__weight__original1", "parametrizations__weight__original0"),
        ],
    )
    def test_both_names(self, v_name, g_name):
        specs = {"c.weight": TensorSpec((4, 5, 3), "conv1d", weight_norm=True)}
        found = mapped(specs, lazy(**{f"c__{v_name}": self.V, f"c__{g_name}": self.G}))
        np.testing.assert_allclose(found["c.weight"], self.WANTED.transpose(0, 2, 1), rtol=1e-7)

    def test_folded_already(self):
        specs = {"c.weight": TensorSpec((4, 5, 3), "conv1d", weight_norm=True)}
        np.testing.assert_array_equal(mapped(specs, lazy(c__weight=self.V))["c.weight"], self.V.transpose(0, 2, 1))

    def test_half_a_pair_is_missing_the_other(self):
        specs = {"c.weight": TensorSpec((4, 5, 3), "conv1d", weight_norm=True)}
        with pytest.raises(CheckpointError, match=re.escape("1 missing: c.weight_g")):
            mapped(specs, lazy(c__weight_v=self.V))

    def test_folded_and_unfolded_at_once_is_unexpected(self):
        specs = {"c.weight": TensorSpec((4, 5, 3), "conv1d", weight_norm=True)}
        with pytest.raises(CheckpointError, match=re.escape("1 unexpected: c.weight")):
            mapped(specs, lazy(c__weight_v=self.V, c__weight_g=self.G, c__weight=self.V))

    def test_not_declared_is_unexpected(self):
        with pytest.raises(CheckpointError, match=r"1 missing: c.weight; 2 unexpected"):
            mapped({"c.weight": TensorSpec((4, 5, 3), "conv1d")}, lazy(c__weight_v=self.V, c__weight_g=self.G))


class TestStrictness:
    def test_one_error_lists_everything(self):
        specs = {"a": TensorSpec((2,)), "b": TensorSpec((2, 3)), "c": TensorSpec((1,))}
        with pytest.raises(CheckpointError) as caught:
            mapped(specs, lazy(b=np.zeros((3, 2)), x=np.zeros(1), y=np.zeros(1), c=np.zeros(1)))
        said = str(caught.value)
        assert said.startswith("model.pth: ")
        for part in ("1 missing: a", "2 unexpected: x, y", "1 wrong shape: b [3, 2], wanted [2, 3]"):
            assert part in said

    def test_long_lists_are_cut(self):
        specs = {f"t{i:02}": TensorSpec((1,)) for i in range(50)}
        with pytest.raises(CheckpointError, match=r"50 missing: t00, .*t11, … 38 more"):
            mapped(specs, {})

    def test_nothing_is_read_before_the_check(self):
        def read():
            raise AssertionError

        with pytest.raises(CheckpointError):
            map_tensors({"a": TensorSpec((2,))}, {"b": LazyTensor((2,), read)}, "m")

    def test_a_transposed_shape_is_not_guessed(self):
        with pytest.raises(CheckpointError, match="wrong shape"):
            mapped({"w": TensorSpec((4, 5, 3), "conv1d")}, lazy(w=np.zeros((4, 5, 3))))

    def test_known_unused(self):
        found = mapped({"a": TensorSpec((1,))}, lazy(a=np.ones(1), pool__weight=np.ones(1)), unused=("pool.{p}",))
        assert list(found) == ["a"]

    def test_constants(self):
        rules = (ConstantRule("{path*}.norm.weight", 1.0), ConstantRule("{path*}.norm.bias", 0.0))
        source = lazy(a=np.ones(1), n__norm__weight=np.ones(3), n__norm__bias=np.zeros(3))
        assert list(mapped({"a": TensorSpec((1,))}, source, constants=rules)) == ["a"]
        source |= lazy(n__norm__bias=np.array([0, 0, 1e-9]))
        with pytest.raises(CheckpointError, match=r"n\.norm\.bias is not 0 everywhere"):
            mapped({"a": TensorSpec((1,))}, source, constants=rules)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_values_must_be_finite(self, bad):
        with pytest.raises(CheckpointError, match="a holds NaN or infinity"):
            mapped({"a": TensorSpec((2,))}, lazy(a=np.array([0, bad])))

    def test_check_shapes(self):
        check_shapes({"a": (1,)}, {"a": (1,)}, "m")
        says = r"1 missing: b; 1 unexpected: c; 1 wrong shape: a \[2\], wanted \[1\]"
        with pytest.raises(CheckpointError, match=says):
            check_shapes({"a": (1,), "b": ()}, {"a": (2,), "c": ()}, "m")
