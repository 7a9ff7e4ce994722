"""Confinement of processes: namespaces, Landlock, seccomp and resource limits."""
