"""Looks after an installation: facts about its health, and what old runs leave behind."""
