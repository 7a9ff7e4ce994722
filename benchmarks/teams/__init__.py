"""Teams and one agent after as many episodes: who learns more of a task that teams are made for.

- `tasks`: the tasks, the models, and how each is learnt
- `plans`: the methods, and the configurations of runs
- `one_agent`: an environment in which one agent reads and writes for the whole team
- `play`: scripted play, for the team and for the one agent
- `training`: imitation, then learning, in folders that are kept and resumed
- `results`: figures of finished runs, tables and a picture
- `comparisons`: two methods on a task, paired over its held-out tasks
- `ablations`: changes of `magrpo`, one setting at a time
- `published`: the stored results, to which later runs are added
"""
