"""Made-up data, for trying and for training, and data from models' answers.

`sample` makes the demo's dataset, `episodes` audio-visual episodes at scale, `pool` and `compose`
tasks of subtasks; `label` and `filter` ask models.
"""
