"""A host over SSH, through an agent that tare copies there (docs/decisions/0020-a-host-agent-over-ssh.md)."""
