"""Training in several processes: the process group and how work is shared."""
