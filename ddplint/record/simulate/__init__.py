"""`run.engine=simulate`: the ranks' steps on fake tensors, one distinct rank after another, in one process.

Parameters and floating tensors hold shapes and no numbers; integer and boolean tensors, and small constants, are real.
DDP's Python is genuine, its reducer is written again (reducer.py), and what only appears between ranks is told by laws
(between.py). The parent imports ``recording`` alone, which needs no torch.
"""
