"""Blocks written in ops and used by several families. They know Programs and weights by name, nothing of speech."""
