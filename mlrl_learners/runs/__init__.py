"""Run directories and files of episodes: names, records, encoding, decoding and traversal.

Every module outside this package reads and writes records through it. `files` has the file names,
`keys` the keys of each record, `records` and `evaluations` the codec, `tree` the traversal of a
rollout tree. Not covered: checkpoints (`mlrl_learners.training.checkpoint`) and the result files of
benchmarks (`mlrl_learners.bench.results`).
"""
