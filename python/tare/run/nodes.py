"""The nodes of a SUT by name: one is the ordinary case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """`name`: of its task, its raw files and its trace. `part`: what sets its data apart, "" of the only node."""

    name: str
    part: str
    number: int
    """From 1."""

    def below(self, directory: str) -> str:
        """The node's own directory in one that holds those of all."""
        return f"{directory}/{self.part}" if self.part else directory

    def before(self, file: str) -> str:
        """The name of a raw file that each node has."""
        return f"{self.name}.{file}" if self.part else file

    def named(self, text: str) -> str:
        """A name that no other node has, made from one of the run."""
        return f"{text}-{self.part}" if self.part else text


def nodes_of(count: int, name: str = "sut") -> tuple[Node, ...]:
    """One called `sut`, or several called `sut-1`, `sut-2` and so on."""
    if count == 1:
        return (Node(name, "", 1),)
    return tuple(Node(f"{name}-{number}", str(number), number) for number in range(1, count + 1))
