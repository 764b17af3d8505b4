"""OpenStack, by openstacksdk: credentials come from its own chain alone (clouds.yaml, OS_* variables)."""
