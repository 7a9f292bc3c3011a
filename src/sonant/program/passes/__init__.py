"""Passes: functions from a Program to an equivalent Program, shared by the backends."""

from sonant.program.passes.fuse import fuse
from sonant.program.passes.outputs import own_outputs

__all__ = ["fuse", "own_outputs"]
