"""Positions: what tells the model the order of the words, to which attention by itself is blind."""

from transformer_cli.model.positions.absolute import LearnedPositions, SinusoidalPositions, sinusoidal_table

__all__ = ["LearnedPositions", "SinusoidalPositions", "sinusoidal_table"]
