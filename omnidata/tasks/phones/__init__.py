"""Shared parts of phone benchmarks: actions, answers, prompt and rules of matching."""
