"""The exceptions of the package: one for each code that the engine returns."""

from typing import Dict, Type


class Error(Exception):
    """Any error of the engine. `code` is its number, which never changes."""

    code = 2


class Cancelled(Error):
    code = 1


class Unknown(Error):
    """Of a commit: it may have committed. A node died, or the log did not become durable in time."""

    code = 2


class InvalidArgument(Error, ValueError):
    code = 3


class DeadlineExceeded(Error, TimeoutError):
    code = 4


class NotFound(Error, KeyError):
    """There is no such row, table or database."""

    code = 5
    __str__ = Exception.__str__  # KeyError's puts the message in quotes


class AlreadyExists(Error):
    """The key of an insert, or a table of that name."""

    code = 6


class PermissionDenied(Error):
    code = 7


class ResourceExhausted(Error):
    """Memory, the disk, transactions at a time, or the size of a transaction."""

    code = 8


class FailedPrecondition(Error):
    code = 9


class Aborted(Error):
    """The transaction met another one. Run it again from its beginning: Database.run does."""

    code = 10


class OutOfRange(Error):
    code = 11


class Unimplemented(Error):
    code = 12


class InternalError(Error):
    code = 13


class Unavailable(Error):
    code = 14


class DataLoss(Error):
    """A file of the directory is missing or damaged."""

    code = 15


_BY_CODE: Dict[int, Type[Error]] = {
    error.code: error
    for error in (
        Cancelled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied,
        ResourceExhausted, FailedPrecondition, Aborted, OutOfRange, Unimplemented, InternalError, Unavailable, DataLoss)
}


# As users know them: in messages, and for pickle.
for _error in (Error, *_BY_CODE.values()):
    _error.__module__ = "gannet"


def error_of_code(code: int) -> Type[Error]:
    return _BY_CODE.get(code, Error)
