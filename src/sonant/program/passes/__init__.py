"""Passes: functions from a Program to an equivalent Program, shared by the backends."""

from sonant.program.passes.fuse import fuse

__all__ = ["fuse"]
