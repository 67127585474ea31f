"""What each operation does, one module a resource, without HTTP."""
