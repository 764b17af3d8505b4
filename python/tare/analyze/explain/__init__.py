"""Where the time of an operation goes: sampled stacks and counters → components, sides and waiting.

`components` names functions, `sampled` counts one run's stacks, `waiting` reads what is not CPU off its trace, and
`explanation` compares arms.
"""
