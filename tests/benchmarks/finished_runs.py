"""Folders of finished runs, as training leaves them."""

import json

from mlrl_learners.config.run import to_mapping
from mlrl_learners.config.yaml import dump_yaml


def write_finished_run(folder, config, returns, held_out):
    """Write the configuration, a return for each iteration, and held-out returns by iteration."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(dump_yaml(to_mapping(config)))
    metrics = [{"iteration": at, "train/return": value} for at, value in enumerate(returns, 1)]
    evaluations = [{"iteration": at, "mean_return": value} for at, value in held_out.items()]
    for name, records in (("metrics", metrics), ("evaluations", evaluations)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines)
