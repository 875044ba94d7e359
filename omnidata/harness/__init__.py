"""Inside other harnesses: every task as theirs, and our models for theirs."""
