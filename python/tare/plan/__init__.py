"""Study → Plan: arms, blocks, seeded order. Pure."""
