"""python -m monograph: see monograph.tools.cli."""

import sys

from monograph.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
