"""Benchmarks: suites, resumable runs, result files and a leaderboard.

An actor plays a suite into a folder of episodes. The folder becomes one result file and a file of
transcripts. Result files are compared, rescored and shown on the leaderboard.
"""
