"""The pages that people see in a browser: the hosted checkout page and the console."""
