"""The wire: client, retry decisions, pacing, job polling. The one place that imports httpx."""
