"""Run the command line with `python -m steelyard`."""

import sys

from steelyard.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
