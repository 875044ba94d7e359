"""The command `omnidata`, also as `python -m omnidata`."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Ctrl-C is no traceback, even while it is imported."""
    try:
        from omnidata.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
