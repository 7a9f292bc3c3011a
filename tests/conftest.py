"""What every test folder shares: the backends of this machine, and one Hypothesis profile."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import settings

from sonant.backends.backend import Backend
from sonant.backends.numpy import NumpyBackend

settings.register_profile("sonant", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("sonant")

NATIVE_IS_BUILT = importlib.util.find_spec("sonant._native") is not None


def _native_backends() -> dict[str, Backend]:
    if not NATIVE_IS_BUILT:
        return {}
    from sonant.backends.native import NativeBackend

    made = ((isa, threads) for isa in NativeBackend.isas() for threads in (1, 2))
    return {f"native-{isa}-{threads}": NativeBackend(threads=threads, isa=isa) for isa, threads in made}


@pytest.fixture(scope="session")
def native_backends() -> dict[str, Backend]:
    """The native backend once for each instruction set of this machine and for one and two threads, by name."""
    found = _native_backends()
    if not found:
        pytest.skip("sonant._native is not built: run `make native`")
    return found


@pytest.fixture(scope="session")
def backends() -> dict[str, Backend]:
    """Every CPU backend by name, the reference (`numpy`) first."""
    return {"numpy": NumpyBackend(), **_native_backends()}


def pytest_report_header() -> str:
    return f"sonant: native backend {', '.join(_native_backends()) or 'not built, its tests are skipped'}"
