"""Prints what this host can enforce: `python -m mlrl_envs.sandbox`."""

import sys

from mlrl_envs.sandbox.probing import probe

sys.stdout.write(f"{probe()}\n")
