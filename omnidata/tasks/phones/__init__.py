"""What benchmarks of phones share: actions, answers, prompt and rules of matching."""
