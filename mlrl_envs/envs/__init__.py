"""Task families: agents, prompts and options, one environment per module.

A module of an environment defines a subclass of `mlrl_envs.envs.family.Family` and the entry point
`parallel_env`. Its docstring is the documentation page of the environment.
"""
