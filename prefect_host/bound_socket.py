"""A port of this machine that is bound once, and handed on: nobody else has it between the look for it and its use.

Who binds it keeps it, and gives it to the server as its standard input, as inetd does. After a crash of the server it
is still taken: the next server has it too, and another user's process gets nothing that is sent there.
"""

from __future__ import annotations

import socket

from patternmill.errors import PatternmillError

HOST = "127.0.0.1"
_WAITING = 128


def bound_socket(port: int = 0) -> socket.socket:
    """One that listens on `port`; 0: on any free one. Raises PatternmillError when the port is taken."""
    bound = socket.socket()
    # Else the port of a server that has just ended is taken for a minute.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port))
        # At once: until then another user may bind the same port, and listen first.
        bound.listen(_WAITING)
    except OSError as error:
        bound.close()
        raise PatternmillError(
            f"Port {port} of {HOST} cannot be used: {error.strerror}.",
            code="port",
            remedy="Name another --port.",
        ) from error
    return bound


def handed_on() -> socket.socket:
    """What this process was given as its standard input."""
    return socket.socket(fileno=0)


def port_of(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])
