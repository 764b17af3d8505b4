"""A sidecar of the engine's: how a user who is not root reaches files and processes of containers.

A container's data belong to the image's users, and its processes are theirs or root's. Whoever may use the engine
may have it do what they may not do themselves: here one container, with few capabilities, that sees TARE_HOME, the
control groups and the processes of the host, and answers while tare's end of its connection is open.
"""
