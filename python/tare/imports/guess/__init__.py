"""A mapping for results that have none yet: guessed from the names of files and what their reports say."""

from __future__ import annotations

from tare.imports.guess.mapping import Guess, guess
from tare.imports.guess.survey import Survey, survey

__all__ = ["Guess", "Survey", "guess", "survey"]
