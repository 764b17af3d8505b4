"""OpenStack through openstacksdk: credentials come only from its own sources (clouds.yaml, OS_* variables)."""
