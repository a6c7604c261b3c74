"""`python -m steelyard` is the command `steelyard`."""

import sys

from steelyard.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
