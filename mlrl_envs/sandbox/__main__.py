"""Command that prints the confinement available on this host: `python -m mlrl_envs.sandbox`."""

import sys

from mlrl_envs.sandbox.probing import probe

sys.stdout.write(f"{probe()}\n")
