"""The flows that people schedule, start and watch: one file each."""
