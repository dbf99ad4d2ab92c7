"""python -m dl3."""

from dl3.cli.main import main

main()
