"""`python -m sonant.cli` is the command."""

from sonant.cli.main import main

main()
