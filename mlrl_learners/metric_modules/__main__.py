"""`python -m mlrl_learners.metric_modules`: print name and path of each metric."""

from mlrl_learners.metric_modules import METRICS, metric_path

for name in METRICS:
    print(f"{name}  {metric_path(name)}")
