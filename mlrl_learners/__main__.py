"""`python -m mlrl_learners` is `mlrl`."""

import sys

from mlrl_learners.cli import main

sys.exit(main())
