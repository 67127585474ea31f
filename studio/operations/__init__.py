"""The operations, one module a resource, without HTTP."""
