"""Tools: a team looks facts up and computes; each agent knows what the other one needs.

python examples/tools.py
"""

import mlrl_envs

env = mlrl_envs.make("mlrl/tools-v1", kinds=["cargo"], max_turns=2)
observations, infos = env.reset(seed=0)
print(observations["solver"])
calls = {
    "researcher": '<tool_call>{"name": "search", "parameters": {"query": "cargo"}}</tool_call>',
    "solver": '<tool_call>{"name": "calculator", "parameters": {"expression": "2+3"}}</tool_call>',
}
observations, rewards, *_ = env.step(calls)
print(observations["solver"])  # with the result of its call
observations, rewards, terminations, *_ = env.step(env.reference_actions())
print(rewards, terminations)
