"""Rewards of the coding environments: functions (HumanEval, MBPP) and classes (ClassEval)."""
