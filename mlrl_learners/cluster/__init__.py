"""Sampling and playing by processes that Ray starts, on one machine or on a cluster.

- `blueprint`: what a process needs to build a copy of a model, and weights as arrays
- `workers`: what is asked of a process: batches or trees, answers and faults
- `sampler_worker`: the process that samples, which answers batches of prompts
- `rollout_worker`: the process that plays, which has samplers of its own
- `worker_pool`, `pool_state`: deals calls to processes, and replaces processes that end or hang
- `packed_rollouts`: rollouts as flat lists, which can be sent
- `ray_session`, `ray_workers`: the only modules that know Ray
- `model_sampler`: the pool in place of the engine of a model
- `team_samplers`: the pool in place of the engines of a team
- `team_rollouts`: the pool in place of the trainer that plays trees
- `suite_samplers`: the same for the learners that play a suite

Not covered: learners in several processes.
"""
