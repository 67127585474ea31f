"""What people see of the studio in a browser: the hosted checkout page and the console."""
