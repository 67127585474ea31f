"""Hosting and taming Prefect: servers, child processes, the connection to a server, its record of runs, events."""
