"""The `sonant` command."""
