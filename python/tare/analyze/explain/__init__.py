"""Where the time of an operation goes: from sampled stacks and counters to components, sides and waiting.

`components` maps functions to components, `sampled` counts one run's stacks, `waiting` reads time without CPU from
its trace, and `explanation` compares arms.
"""
