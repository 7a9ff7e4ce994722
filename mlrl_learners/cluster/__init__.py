"""Sampling by processes that Ray starts, on one machine or on a cluster.

- `blueprint`: what a process needs to build a copy of a model, and weights as arrays
- `workers`: what is asked of a process: batches, answers and faults
- `sampler_worker`: the process, which answers batches of prompts
- `worker_pool`: deals batches to processes, and replaces processes that end or hang
- `ray_session`, `ray_workers`: the only modules that know Ray
- `team_samplers`: the pool in place of the engines of a team
- `suite_samplers`: the same for the learners that play a suite

Not covered: learners in several processes, and processes that play whole episodes.
"""
