"""The upkeep of an installation: facts about its health, and the removal of what old runs leave behind."""
