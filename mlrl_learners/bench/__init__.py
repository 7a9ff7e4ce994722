"""Benchmarks: suites of tasks, runs that survive interruption, statistics, a leaderboard.

A suite is played by an actor into a folder of episodes; the folder becomes one result file with
its transcripts beside it; result files are compared, scored anew and shown on a page.
"""
