"""YAML → frozen Study."""
