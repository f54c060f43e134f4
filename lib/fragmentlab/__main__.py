"""Run the command line: ``python -m fragmentlab`` is ``fragmentlab``."""

import sys

from fragmentlab.cli import main

sys.exit(main())
