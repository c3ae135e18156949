"""Gannet: a transactional storage engine in this process.

    import gannet

    with gannet.open("/var/lib/cities", create=True) as db:
        cities = db.create_table("cities", key=str, payload=64)

        with db.transaction() as t:               # commits at its end; an exception rolls it back
            t[cities, "Oslo"] = b"Norway"
            print(t[cities, "Oslo"])

        @db.transactional                         # runs again after a conflict
        def rename(t, old, new):
            t.insert(cities, new, t[cities, old])
            del t[cities, old]

        rename("Oslo", "Christiania")
        with db.transaction() as t:
            for city, country in t.scan(cities, prefix="C"):
                print(city.decode(), country.decode())

Keys are int (0 to 2**64 - 1), or str, bytes and tuples, which are byte keys: a str is its UTF-8, a tuple of int, float,
bool, str and bytes keeps the order of its fields. Scans return byte keys as bytes; `unpack` reads those of tuples.

Payloads are bytes, or any object with the buffer protocol, such as a numpy scalar or array. A table with a numpy dtype
returns its rows as numpy scalars.

A database and its tables may be used by any number of threads, a transaction by one at a time. Calls that may wait give
up the interpreter's lock.
"""

import contextlib
import functools
import os
from typing import Any, Callable, Iterator, List, Optional, Tuple, TypeVar

from . import _gannet
from ._errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition,
                      InternalError, InvalidArgument, NotFound, OutOfRange, PermissionDenied, ResourceExhausted,
                      Unavailable, Unimplemented, Unknown)
from ._gannet import pack, pack_rectangle, unpack, unpack_rectangle

__version__ = _gannet.version
__all__ = [
    "Aborted", "AlreadyExists", "Cancelled", "Cursor", "DataLoss", "Database", "DeadlineExceeded", "Error",
    "FailedPrecondition", "InternalError", "InvalidArgument", "NotFound", "OutOfRange", "PermissionDenied",
    "ResourceExhausted", "Table", "Transaction", "Unavailable", "Unimplemented", "Unknown", "open", "pack",
    "pack_rectangle", "signed", "unpack", "unpack_rectangle", "unsigned"
]

_T = TypeVar("_T")
_SIGN = 1 << 63


def signed(number: int) -> int:
    """The integer key of a number that may be negative (-2**63 to 2**63 - 1); these keys are in the numbers' order."""
    if not -_SIGN <= number < _SIGN:
        raise ValueError(f"{number} does not fit 64 bits")
    return number + _SIGN


def unsigned(key: int) -> int:
    """The number of such a key."""
    return key - _SIGN


class Table:
    """A table of an open database. Made by Database.create_table and Database.table."""

    def __init__(self, table: _gannet.Table, dtype: Any = None):
        self._table = table
        self.dtype = _dtype_of(dtype)
        if self.dtype is not None and (self.variable_length or self.payload_bytes != self.dtype.itemsize):
            raise ValueError(f"table '{self.name}': payloads of {self.payload_bytes} bytes"
                             f"{' at most' if self.variable_length else ''}, but {self.dtype} has {self.dtype.itemsize}")

    @property
    def name(self) -> str:
        return self._table.name

    @property
    def key(self) -> type:
        """int, or bytes."""
        return int if self._table.integer_keys else bytes

    @property
    def max_key_bytes(self) -> int:
        return self._table.max_key_bytes

    @property
    def index(self) -> str:
        """'hash', 'xstore', ..."""
        return self._table.index

    @property
    def ordered(self) -> bool:
        """True if it can be scanned."""
        return self._table.ordered

    @property
    def payload_bytes(self) -> int:
        """Of every row; if variable_length, at most."""
        return self._table.payload_bytes

    @property
    def variable_length(self) -> bool:
        return self._table.variable_length

    @property
    def application(self) -> str:
        """The note that its creator left in the directory."""
        return self._table.application

    def __repr__(self) -> str:
        return f"<gannet.Table '{self.name}': {self.index} of {self.key.__name__} keys>"

    def _row(self, payload: bytes) -> Any:
        if self.dtype is None:
            return payload
        import numpy
        return numpy.frombuffer(payload, self.dtype)[0]


class Cursor:
    """Moves over the rows of a range, in both directions. The moves return whether there is a row."""

    def __init__(self, cursor: _gannet.Cursor, table: Table):
        self._cursor = cursor
        self._table = table
        self.first = cursor.first
        self.last = cursor.last
        self.next = cursor.next
        self.previous = cursor.previous
        self.seek_forward = cursor.seek_forward
        self.seek_backward = cursor.seek_backward

    @property
    def key(self) -> Any:
        """None if the cursor is at no row."""
        return self._cursor.key()

    @property
    def row(self) -> Any:
        """None if the cursor is at no row, or has keys only."""
        payload = self._cursor.payload()
        return None if payload is None else self._table._row(payload)


class Transaction:
    """Reads and writes, all of which happen or none. Made by Database.transaction, begin and run.

    A read that meets a concurrent change, and a commit that does, raise Aborted: the transaction is then run again from
    its beginning. What was read may be relied on when it has committed.
    """

    def __init__(self, transaction: _gannet.Transaction):
        self._transaction = transaction

    # ---- Rows

    def get(self, table: Table, key: Any, default: Any = None) -> Any:
        """The row, or `default` if there is none."""
        payload = self._transaction.get(table._table, key)
        return default if payload is None else table._row(payload)

    def exists(self, table: Table, key: Any) -> bool:
        return self._transaction.exists(table._table, key)

    def insert(self, table: Table, key: Any, row: Any) -> None:
        """AlreadyExists, here or from the commit, if there is such a row."""
        self._transaction.insert(table._table, key, row)

    def update(self, table: Table, key: Any, row: Any) -> None:
        """Replaces the row. NotFound if there is none."""
        self._transaction.update(table._table, key, row)

    def upsert(self, table: Table, key: Any, row: Any) -> None:
        """Inserts the row, or replaces it."""
        self._transaction.upsert(table._table, key, row)

    def update_if(self, table: Table, key: Any, expected: Any, row: Any) -> bool:
        """Replaces the row if it is `expected`; returns whether it was. NotFound if there is none."""
        return self._transaction.update_if(table._table, key, expected, row)

    def remove(self, table: Table, key: Any) -> None:
        """NotFound if there is no such row."""
        self._transaction.remove(table._table, key)

    def add(self, table: Table, key: Any, delta: Any, offset: int = 0) -> Any:
        """Adds to the number of 8 bytes at `offset` of the row, a double if `delta` is a float, and returns the sum.

        NotFound; OutOfRange if the row ends before, or the sum does not fit.
        """
        add = self._transaction.add_double if isinstance(delta, float) else self._transaction.add_integer
        return add(table._table, key, delta, offset)

    def __getitem__(self, place: Tuple[Table, Any]) -> Any:
        table, key = place
        row = self.get(table, key)
        if row is None:
            raise NotFound(f"table '{table.name}', key {key!r}")
        return row

    def __setitem__(self, place: Tuple[Table, Any], row: Any) -> None:
        table, key = place
        self.upsert(table, key, row)

    def __delitem__(self, place: Tuple[Table, Any]) -> None:
        table, key = place
        self.remove(table, key)

    def __contains__(self, place: Tuple[Table, Any]) -> bool:
        table, key = place
        return self.exists(table, key)

    # ---- Ranges: start <= key < stop, or the keys that begin with prefix (bytes, a str, or the first fields of a tuple)

    def scan(self, table: Table, start: Any = None, stop: Any = None, *, prefix: Any = None,
             reverse: bool = False) -> Iterator[Tuple[Any, Any]]:
        """(key, row), in the order of the keys. Rows are read as the loop comes to them, in constant memory."""
        for cursor in self._walk(table, start, stop, prefix, reverse, keys_only=False):
            yield cursor.key(), table._row(cursor.payload())

    def keys(self, table: Table, start: Any = None, stop: Any = None, *, prefix: Any = None,
             reverse: bool = False) -> Iterator[Any]:
        """The keys alone, which costs less."""
        for cursor in self._walk(table, start, stop, prefix, reverse, keys_only=True):
            yield cursor.key()

    def _walk(self, table: Table, start: Any, stop: Any, prefix: Any, reverse: bool,
              keys_only: bool) -> Iterator[_gannet.Cursor]:
        cursor = self._open(table, start, stop, prefix, keys_only)
        more = cursor.last() if reverse else cursor.first()
        move = cursor.previous if reverse else cursor.next
        while more:
            yield cursor
            more = move()

    def _open(self, table: Table, start: Any, stop: Any, prefix: Any, keys_only: bool) -> _gannet.Cursor:
        return self._transaction.cursor(table._table, start, True, stop, False, _prefix(prefix), keys_only)

    def cursor(self, table: Table, start: Any = None, stop: Any = None, *, prefix: Any = None,
               keys_only: bool = False) -> Cursor:
        """A cursor over the range, before its first move."""
        return Cursor(self._open(table, start, stop, prefix, keys_only), table)

    def array(self, table: Table, start: Any = None, stop: Any = None, *, prefix: Any = None,
              reverse: bool = False) -> Tuple[List[Any], Any]:
        """All rows of the range at once: the list of their keys, and a numpy array of the rows.

        The table has a dtype, or rows of one length; these are then an array of bytes with a line for each row.
        """
        import numpy
        if table.variable_length:
            raise ValueError(f"table '{table.name}' has rows of different lengths: use scan")
        cursor = self._open(table, start, stop, prefix, keys_only=False)
        keys, payloads, _ = cursor.gather(reverse)
        if table.dtype is not None:
            return keys, numpy.frombuffer(payloads, table.dtype)
        return keys, numpy.frombuffer(payloads, numpy.uint8).reshape(len(keys), table.payload_bytes)

    # ---- Rectangles: (min_x, min_y, max_x, max_y) and an id; see pack_rectangle for the keys

    def search(self, table: Table, box: Tuple[float, float, float, float]) -> List[Tuple[bytes, Any]]:
        """(key, row) of the rows whose rectangles meet the box, in the order of their keys."""
        return [(key, table._row(row)) for key, row in self._transaction.search(table._table, box)]

    def nearest(self, table: Table, x: float, y: float, count: int = 1) -> List[Tuple[bytes, Any]]:
        """(key, row) of the `count` rows whose rectangles are nearest to the point, the nearest first."""
        return [(key, table._row(row)) for key, row in self._transaction.nearest(table._table, x, y, count)]

    # ---- The end

    def commit(self) -> None:
        self._transaction.commit()

    def rollback(self) -> None:
        """Drops the changes and forgets the reads: the transaction is as if it had just begun, also after commit."""
        self._transaction.rollback()

    def validate(self) -> None:
        """Aborted if something that was read has changed."""
        self._transaction.validate()


class Database:
    """An open database. Made by open(). A context manager, which closes it."""

    def __init__(self, database: _gannet.Database):
        self._database = database

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Writes what is not durable yet. FailedPrecondition if a transaction is open."""
        self._database.close()

    # ---- Tables

    def create_table(self, name: str, *, key: Any = int, max_key_bytes: int = 64, index: str = "xstore",
                     payload: Any = None, max_payload: int = 4096, expected_rows: int = 1024, application: str = "") -> Table:
        """Makes a table, durably; or returns the one of this name that the directory has.

        key: int, or str, bytes or tuple, which are all byte keys, of at most max_key_bytes.
        index: 'hash' (no order), 'xstore' (ordered), 'catfish' (rectangles), 'blink', 'rolex'.
        payload: the bytes of every row, or a numpy dtype; None: rows of any length up to max_payload.
        """
        dtype = None if payload is None or isinstance(payload, int) else _dtype_of(payload)
        size = max_payload if payload is None else payload if dtype is None else dtype.itemsize
        if key not in (int, str, bytes, tuple):
            raise TypeError(f"key is {key!r}: int, str, bytes or tuple")
        if index == "catfish":
            max_key_bytes = 40
        table = self._database.create_table(name, key is int, max_key_bytes, index, size, payload is None, expected_rows,
                                            application)
        return Table(table, dtype)

    def table(self, name: str, dtype: Any = None) -> Table:
        """The table of this name; NotFound if there is none. With a dtype its rows are numpy scalars."""
        found = self._database.find_table(name)
        if found is None:
            raise NotFound(f"there is no table '{name}'")
        return Table(found, dtype)

    def tables(self) -> List[Table]:
        """In the order of their creation."""
        return [Table(table) for table in self._database.tables()]

    def rename_table(self, old: str, new: str) -> None:
        self._database.rename_table(old, new)

    def drop_table(self, name: str) -> None:
        """Removes the table and all its rows, for good. Transactions that are open must end first: DeadlineExceeded."""
        self._database.drop_table(name)

    def widen_table(self, name: str, payload: int) -> None:
        """Makes the payloads larger: those of fixed size get zeros at their end. A dtype is given to table() again."""
        self._database.widen_table(name, payload)

    def arrange_table(self, name: str) -> None:
        """Brings the rows of an ordered table into the order of their keys, in memory, which makes scans faster."""
        self._database.arrange_table(name)

    # ---- Transactions

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One attempt: commits at the end of the block, and rolls back if an exception leaves it.

        Aborted, from the block or its end, says that it met another transaction and is to be run again: use run, or
        transactional, where that may happen.
        """
        with contextlib.closing(self._database.begin()) as begun:
            yield Transaction(begun)
            begun.commit()

    def run(self, body: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
        """body(transaction, ...), committed; returns its result. After a conflict it runs again.

        So it has no effects outside of the database. If it raises an exception, the transaction is rolled back, and the
        exception is raised here if what the body had read was current; else the body runs again.
        """
        with contextlib.closing(self._database.begin()) as begun:
            while True:
                try:
                    try:
                        result = body(Transaction(begun), *args, **kwargs)
                    except Aborted:
                        raise
                    except Exception:
                        begun.validate()
                        raise
                    begun.commit()
                    return result
                except Aborted:
                    begun.try_again()

    def transactional(self, body: Callable[..., _T]) -> Callable[..., _T]:
        """A decorator: calls of the function give it a transaction as its first argument, as run does."""

        @functools.wraps(body)
        def call(*args: Any, **kwargs: Any) -> _T:
            return self.run(body, *args, **kwargs)

        return call

    @contextlib.contextmanager
    def begin(self) -> Iterator[Transaction]:
        """A transaction that the block ends itself by commit; without that it is rolled back."""
        with contextlib.closing(self._database.begin()) as begun:
            yield Transaction(begun)

    # ---- Durability

    def checkpoint(self) -> None:
        """Makes everything durable by a checkpoint; the log before it is not needed any more."""
        self._database.checkpoint()

    def backup(self, directory: Any) -> None:
        """Copies the database into a new or empty directory while transactions run. What was committed before the call
        is in the copy, which gannet.open(directory) opens. After an error there is nothing in it."""
        self._database.backup(os.fsencode(directory))

    def check_log(self) -> None:
        """Raises the reason if commits cannot be made durable now."""
        self._database.log_health()

    def metrics(self) -> str:
        """Memory, log, checkpoints and conflicts in Prometheus's text format, for a web server of the program."""
        return self._database.metrics()

    def logged_epoch(self) -> int:
        """With durability='async': what was committed before is durable once durable_epoch() has reached this."""
        return self._database.logged_epoch()

    def durable_epoch(self) -> int:
        return self._database.durable_epoch()


def open(  # pylint: disable=redefined-builtin
        directory: Any = None, *, on_event: Optional[Callable[[str, str], Any]] = None, **options: Any) -> Database:
    """Opens the database in a directory, and recovers it; None: a database in memory only.
    A directory is a str, bytes, or a path object.

    create=True: make it if there is none (otherwise NotFound).
    durability: 'sync' (a commit returns when it is durable), 'async' (a crash may lose the last milliseconds), 'none'.
    memory_bytes: address space for rows and indexes; 8 GiB.
    checkpoint_every, group_commit, durable_within: seconds.
    largest_transaction_bytes, recovery_threads, open_transactions (at a time; 64), application (a note).
    on_event(level, text): called with rare events, for the log of the program: what recovery did and which damage it
    met, automatic checkpoints, a disk that is full or fails and that works again. The level is 'info', 'warning' or
    'error'. Any thread calls it, from open until close has returned. It must return soon, and must not use the
    database. An exception in it goes to sys.unraisablehook. It is not called any more when Python exits.
    """
    options["on_event"] = on_event
    return Database(_gannet.open(None if directory is None else os.fsencode(directory), options))


def _dtype_of(dtype: Any) -> Any:
    if dtype is None:
        return None
    import numpy
    return numpy.dtype(dtype)


def _prefix(prefix: Any) -> Any:
    return pack(prefix) if isinstance(prefix, tuple) else prefix
