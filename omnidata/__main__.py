"""`python -m omnidata` is `omnidata`."""

from omnidata.cli import main

main()
