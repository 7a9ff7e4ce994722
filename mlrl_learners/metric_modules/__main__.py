"""`python -m mlrl_learners.metric_modules`: print a line for each module, its name and path."""

from mlrl_learners.metric_modules import METRICS, metric_path

for name in METRICS:
    print(f"{name}  {metric_path(name)}")
