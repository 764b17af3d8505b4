"""A sidecar in the engine: gives a non-root user access to files and processes of containers.

A container's data belongs to the image's users, and its processes run as them or as root. A user of the engine can
have it do what the user may not do: here, it runs one container with few capabilities that sees TARE_HOME, the
host's control groups and its processes, and answers as long as tare's end of its connection is open.
"""
