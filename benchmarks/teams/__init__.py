"""Teams and one agent at equal tokens: who learns more of a task that teams are made for.

- `plans`: the tasks, the models, and how each is learnt
- `one_agent`: an environment in which one agent reads and writes for the whole team
- `play`: scripted play, for the team and for the one agent
- `training`: imitation, then learning, in folders that are kept and resumed
- `results`: figures of finished runs, paired comparisons, tables
"""
