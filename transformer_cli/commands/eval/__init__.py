"""Translations and their scores."""
