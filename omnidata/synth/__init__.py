"""Made-up data at scale, for training, and data from models' answers.

`episodes` makes audio-visual episodes, `pool` and `compose` tasks of subtasks; `label` and `filter`
ask models.
"""
