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
                print(city, country.decode())

Keys are int (0 to 2**64 - 1), or str, bytes and tuples, which are byte keys: a str is its UTF-8, a tuple of int, float,
bool, str and bytes keeps the order of its fields. A table gives keys back in the form with which it was made:
`key=str`, `key=bytes`, `key=tuple`, or `key=(str, int)`, which says what the fields are; with `key=gannet.signed` keys
are int that may be negative (-2**63 to 2**63 - 1). The directory keeps the form, so that Database.table and `gannet`
know it; but of a tuple's fields it keeps no types. Strings in keys of `tuple` are str. A string that is no UTF-8 is
bytes.

Payloads are bytes, or any object with the buffer protocol, such as a numpy scalar or array. A table with a numpy dtype
returns its rows as numpy scalars, which are copies, and also takes numbers, and tuples and dicts of the dtype's fields.

A secondary index is another order of a table's rows, by fields of its dtype, which the engine keeps:

    people = db.create_table("people", payload=[("mail", "S32"), ("born", "<i4")])
    by_mail = db.create_index("by_mail", people, "mail", unique=True)
    by_year = db.create_index("by_year", people, "born")
    with db.transaction() as t:
        t[people, 1] = ("ann@example.org", 1980)
        number, ann = t.get_by(by_mail, "ann@example.org")
        for number, person in t.scan(by_year, 1950, 2000): ...

A database and its tables may be used by any number of threads, a transaction by one at a time. Calls that may wait give
up the interpreter's lock. A database belongs to the process that opened it: in a child of os.fork, or of
multiprocessing with the method "fork", its methods raise FailedPrecondition, and what was opened before must not be
used otherwise. A child opens a database itself, when its parent has closed it.
"""

import contextlib
import functools
import operator
import os
from typing import (Any, Callable, Concatenate, Dict, Iterator, List, NamedTuple, Optional, ParamSpec, Sequence, Tuple,
                    Type, TypeVar, Union)

from . import _gannet
from ._errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition,
                      InternalError, InvalidArgument, NotFound, OutOfRange, PermissionDenied, ResourceExhausted,
                      Unavailable, Unimplemented, Unknown)
from ._gannet import pack, pack_rectangle, unpack, unpack_rectangle

__version__ = _gannet.version
__all__ = [
    "Aborted", "AlreadyExists", "Cancelled", "Cursor", "DataLoss", "Database", "DeadlineExceeded", "Error",
    "FailedPrecondition", "Field", "Index", "InternalError", "InvalidArgument", "NotFound", "OutOfRange",
    "PermissionDenied", "ResourceExhausted", "Rows", "Table", "Transaction", "Unavailable", "Unimplemented", "Unknown",
    "open", "pack", "pack_rectangle", "signed", "unpack", "unpack_rectangle", "unsigned"
]

_T = TypeVar("_T")
_P = ParamSpec("_P")
_SIGN = 1 << 63
# int, bytes, str, tuple, the types of a tuple's fields, or signed.
KeyForm = Union[Type[int], Type[bytes], Type[str], Type[Tuple[Any, ...]], Tuple[type, ...], Callable[[int], int]]


def signed(number: int) -> int:
    """The integer key of a number that may be negative (-2**63 to 2**63 - 1); these keys are in the numbers' order. A
    table that create_table made with key=gannet.signed makes them itself: its keys are the numbers."""
    if not -_SIGN <= number < _SIGN:
        raise ValueError(f"{number} does not fit 64 bits")
    return number + _SIGN


def unsigned(key: int) -> int:
    """The number of such a key."""
    return key - _SIGN


class Field(NamedTuple):
    """A field of a secondary index: numbers or bytes at a place in the row; of_key: in the row's key instead. For what
    the table's dtype does not name. The dtype is one of numpy: "<i8", "S16" (a text), "V16" (bytes)."""

    dtype: Any
    offset: int = 0
    of_key: bool = False


class Table:
    """A table of an open database. Made by Database.create_table and Database.table."""

    def __init__(self, table: _gannet.Table, dtype: Any = None, key: Optional[KeyForm] = None):
        self._key: KeyForm = _KEYS_OF[table.key_form] if key is None else key
        form = _form_of(self._key)
        if table.integer_keys != _is_integer_form(form):
            kind = "integer" if table.integer_keys else "byte"
            raise TypeError(f"key is {key!r}, but table '{table.name}' has {kind} keys")
        self._table = table.with_keys(form)
        self.dtype = _dtype_of(dtype)
        if self.dtype is not None and (self.variable_length or self.payload_bytes != self.dtype.itemsize):
            raise ValueError(f"table '{self.name}': payloads of {self.payload_bytes} bytes"
                             f"{' at most' if self.variable_length else ''}, but {self.dtype} has "
                             f"{self.dtype.itemsize}")
        fields = [] if self.dtype is None else list((self.dtype.fields or {"": (self.dtype, 0)}).values())
        self._unsigned = frozenset(field[1] for field in fields if field[0].str == "<u8")  # their places

    @property
    def name(self) -> str:
        return self._table.name

    @property
    def key(self) -> KeyForm:
        """The form of the keys that it gives back: int, bytes, str, tuple, the types of a tuple's fields, or
        gannet.signed."""
        return self._key

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
        key = self._key if isinstance(self._key, type) else None
        return f"<gannet.Table '{self.name}': {self.index} of {key.__name__ if key else _form_of(self._key)} keys>"

    def _row(self, payload: bytes) -> Any:
        """A row that was read."""
        if self.dtype is None:
            return payload
        import numpy
        return numpy.frombuffer(bytearray(payload), self.dtype)[0]

    def _payload(self, row: Any) -> Any:
        """A row to write."""
        if self.dtype is None or not isinstance(row, (tuple, dict, int, float)) or hasattr(row, "dtype"):
            return row
        import numpy
        if isinstance(row, (tuple, dict)) != (self.dtype.names is not None):
            raise TypeError(f"row is {row!r}, but the dtype of table '{self.name}' is {self.dtype}")
        value = self._record(row) if isinstance(row, (tuple, dict)) else self._field("row", self.dtype, row)
        return numpy.array(value, self.dtype)

    def _record(self, row: Union[Tuple[Any, ...], Dict[str, Any]]) -> Tuple[Any, ...]:
        names = self.dtype.names
        if isinstance(row, dict):
            if row.keys() != set(names):
                raise ValueError(f"table '{self.name}': the row has the fields {', '.join(map(str, row))}; "
                                 f"those of the dtype are {', '.join(names)}")
            row = tuple(row[name] for name in names)
        elif len(row) != len(names):
            raise ValueError(f"table '{self.name}': the row has {len(row)} fields, the dtype {len(names)}: "
                             f"{', '.join(names)}")
        return tuple(self._field(name, self.dtype[name], value) for name, value in zip(names, row))

    def _field(self, name: str, dtype: Any, value: Any) -> Any:
        """A value for numpy, which would cut what does not fit, and takes only ASCII as text."""
        if dtype.kind == "S" and isinstance(value, (str, bytes)):
            text = value.encode() if isinstance(value, str) else value
            if len(text) > dtype.itemsize:
                raise ValueError(f"table '{self.name}': {name} is {value!r}, which has more than {dtype.itemsize} "
                                 "bytes")
            return text
        if dtype.kind in "iu" and isinstance(value, (int, float)):
            import numpy
            if isinstance(value, float):
                raise TypeError(f"table '{self.name}': {name} is {value!r}: an int")
            limits = numpy.iinfo(dtype)
            if not limits.min <= value <= limits.max:
                raise ValueError(f"table '{self.name}': {name} is {value}, which does not fit {dtype}")
        return value


class Index:
    """A secondary index of an open database. Made by Database.create_index and Database.index.

    It stands for its table in Transaction.scan, keys, cursor and array, whose keys are then those of the index: its
    field, or a tuple of its fields or the first ones. What these methods return are the table's own keys, and rows.
    Of an index that goes by a function of a C++ program, the keys are what the function returns: bytes, or int.
    """

    def __init__(self, index: _gannet.Index, table: Table):
        self._index = index.with_keys(_form_of(table.key))
        self._has_fields = bool(self._index.fields)
        self.table = table

    @property
    def name(self) -> str:
        return self._index.name

    @property
    def unique(self) -> bool:
        return self._index.unique

    def __repr__(self) -> str:
        return f"<gannet.Index '{self.name}' of table '{self.table.name}'{', unique' if self.unique else ''}>"


class Cursor:
    """Moves over the rows of a range, in both directions. The moves return whether there is a row."""

    def __init__(self, cursor: _gannet.Cursor, over: Union[Table, Index]):
        self._cursor = cursor
        self._over = over
        self.first = cursor.first
        self.last = cursor.last
        self.next = cursor.next
        self.previous = cursor.previous

    def seek_forward(self, key: Any) -> bool:
        """To the first row whose key is not smaller."""
        return self._cursor.seek_forward(_key_of(self._over, key))

    def seek_backward(self, key: Any) -> bool:
        """To the last row whose key is not greater."""
        return self._cursor.seek_backward(_key_of(self._over, key))

    @property
    def key(self) -> Any:
        """The row's own key; None if the cursor is at no row."""
        return self._cursor.key()

    @property
    def index_key(self) -> Any:
        """Its key in the index, a tuple; None if the cursor is at no row. ValueError if it goes by no index."""
        return self._cursor.index_key()

    @property
    def row(self) -> Any:
        """None if the cursor is at no row, or has keys only."""
        payload = self._cursor.payload()
        return None if payload is None else _table_of(self._over)._row(payload)


class Rows:
    """The rows of one table within a transaction, as a mapping: t[table]. Iteration goes through the keys in order."""

    def __init__(self, transaction: "Transaction", table: Table):
        self._transaction = transaction
        self._table = table

    def get(self, key: Any, default: Any = None) -> Any:
        return self._transaction.get(self._table, key, default)

    def __getitem__(self, key: Any) -> Any:
        return self._transaction._get(self._table, key)

    def __setitem__(self, key: Any, row: Any) -> None:
        self._transaction.upsert(self._table, key, row)

    def __delitem__(self, key: Any) -> None:
        self._transaction.remove(self._table, key)

    def __contains__(self, key: Any) -> bool:
        return self._transaction.exists(self._table, key)

    def __iter__(self) -> Iterator[Any]:
        return self._transaction.keys(self._table)

    def items(self) -> Iterator[Tuple[Any, Any]]:
        return self._transaction.scan(self._table)


class Transaction:
    """Reads and writes, all of which happen or none. Made by Database.transaction, begin and run.

    A read that meets a concurrent change, and a commit that does, raise Aborted: the transaction is then run again from
    its beginning. What was read may be relied on when it has committed.
    """

    def __init__(self, transaction: _gannet.Transaction, ended_by: str = ""):
        self._transaction = transaction
        self._ended_by = ended_by  # what ends it; empty: the program
        self._refused: Optional[FailedPrecondition] = None

    # ---- Rows

    def get(self, table: Table, key: Any, default: Any = None) -> Any:
        """The row, or `default` if there is none."""
        payload = self._transaction.get(_native(table), key)
        return default if payload is None else table._row(payload)

    def get_by(self, index: Index, key: Any, default: Any = None) -> Any:
        """(key, row) of the row with this key in a unique index, or `default`."""
        if not isinstance(index, Index):
            raise TypeError(f"index is {index!r}: a gannet.Index")
        found = self._transaction.get_by(index._index, _key_of(index, key))
        return default if found is None else (found[0], index.table._row(found[1]))

    def exists(self, table: Table, key: Any) -> bool:
        return self._transaction.exists(_native(table), key)

    def insert(self, table: Table, key: Any, row: Any) -> None:
        """AlreadyExists, here or from the commit, if there is such a row."""
        self._transaction.insert(_native(table), key, table._payload(row))

    def update(self, table: Table, key: Any, row: Any) -> None:
        """Replaces the row. NotFound if there is none."""
        self._transaction.update(_native(table), key, table._payload(row))

    def upsert(self, table: Table, key: Any, row: Any) -> None:
        """Inserts the row, or replaces it."""
        self._transaction.upsert(_native(table), key, table._payload(row))

    def update_if(self, table: Table, key: Any, expected: Any, row: Any) -> bool:
        """Replaces the row if it is `expected`; returns whether it was. NotFound if there is none."""
        return self._transaction.update_if(_native(table), key, table._payload(expected), table._payload(row))

    def remove(self, table: Table, key: Any) -> None:
        """NotFound if there is no such row."""
        self._transaction.remove(_native(table), key)

    def add(self, table: Table, key: Any, delta: Any, offset: Union[int, str] = 0) -> Any:
        """Adds to the number of 8 bytes at `offset` of the row, and returns the sum. The number is a double if `delta`
        is a float, else unsigned if the table's dtype says so, else signed. The offset may be the name of a field of
        the dtype.

        NotFound; OutOfRange if the row ends before, or the sum does not fit.
        """
        native = _native(table)
        if isinstance(offset, str):
            dtype, offset = _field_of(table, offset)
            if dtype.itemsize != 8 or dtype.kind not in ("f" if isinstance(delta, float) else "iu"):
                raise TypeError(f"delta is {delta!r}, but the field is {dtype}: add takes integers and doubles of 8 "
                                "bytes")
        if isinstance(delta, float):
            return self._transaction.add_double(native, key, delta, offset)
        add = self._transaction.add_unsigned if offset in table._unsigned else self._transaction.add_integer
        return add(native, key, delta, offset)

    def _get(self, table: Table, key: Any) -> Any:
        payload = self._transaction.get(_native(table), key)
        if payload is None:
            raise NotFound(f"table '{table.name}', key {key!r}")
        return table._row(payload)

    def __getitem__(self, place: Any) -> Any:
        """t[table, key] is the row; t[table] all of them (Rows)."""
        if isinstance(place, Table):
            return Rows(self, place)
        return self._get(*_place(place))

    def __setitem__(self, place: Tuple[Table, Any], row: Any) -> None:
        table, key = _place(place)
        self.upsert(table, key, row)

    def __delitem__(self, place: Tuple[Table, Any]) -> None:
        self.remove(*_place(place))

    def __contains__(self, place: Tuple[Table, Any]) -> bool:
        return self.exists(*_place(place))

    __iter__ = None

    # ---- Ranges: start <= key < stop, or the keys that begin with prefix (bytes, a str, or the first fields of a
    # tuple). An index stands for its table, in its own order; prefix is then a tuple of its first fields.

    def scan(self, table: Union[Table, Index], start: Any = None, stop: Any = None, *, prefix: Any = None,
             reverse: bool = False) -> Iterator[Tuple[Any, Any]]:
        """(key, row), in the order of the keys. Rows are read as the loop comes to them, in constant memory, and the
        loop meets what it has changed itself."""
        return self._transaction.rows(*self._range(table, start, stop, prefix), False, reverse, _table_of(table).dtype)

    def keys(self, table: Union[Table, Index], start: Any = None, stop: Any = None, *, prefix: Any = None,
             reverse: bool = False) -> Iterator[Any]:
        """The keys alone, which costs less."""
        return self._transaction.rows(*self._range(table, start, stop, prefix), True, reverse, None)

    def cursor(self, table: Union[Table, Index], start: Any = None, stop: Any = None, *, prefix: Any = None,
               keys_only: bool = False) -> Cursor:
        """A cursor over the range, before its first move."""
        return Cursor(self._transaction.cursor(*self._range(table, start, stop, prefix), keys_only), table)

    def array(self, table: Union[Table, Index], start: Any = None, stop: Any = None, *, prefix: Any = None,
              reverse: bool = False) -> Tuple[List[Any], Any]:
        """All rows of the range at once: the list of their keys, and a numpy array of the rows.

        The table has a dtype, or rows of one length; these are then an array of bytes with a line for each row.
        """
        import numpy
        rows = _table_of(table)
        if rows.variable_length:
            raise ValueError(f"table '{rows.name}' has rows of different lengths: use scan")
        keys, payloads = self._transaction.cursor(*self._range(table, start, stop, prefix), False).gather(reverse)
        if rows.dtype is not None:
            return keys, numpy.frombuffer(payloads, rows.dtype)
        return keys, numpy.frombuffer(payloads, numpy.uint8).reshape(len(keys), rows.payload_bytes)

    def _range(self, over: Union[Table, Index], start: Any, stop: Any,
               prefix: Any) -> Tuple[Union[_gannet.Table, _gannet.Index], Any, Any, Any]:
        native: Union[_gannet.Table, _gannet.Index] = over._index if isinstance(over, Index) else _native(over)
        return native, _key_of(over, start), _key_of(over, stop), _key_of(over, prefix)

    # ---- Rectangles: (min_x, min_y, max_x, max_y) and an id; see pack_rectangle for the keys

    def search(self, table: Table, box: Tuple[float, float, float, float]) -> List[Tuple[bytes, Any]]:
        """(key, row) of the rows whose rectangles meet the box, in the order of their keys."""
        return [(key, table._row(row)) for key, row in self._transaction.search(_native(table), box)]

    def nearest(self, table: Table, x: float, y: float, count: int = 1) -> List[Tuple[bytes, Any]]:
        """(key, row) of the `count` rows whose rectangles are nearest to the point, the nearest first."""
        return [(key, table._row(row)) for key, row in self._transaction.nearest(_native(table), x, y, count)]

    # ---- The end

    def commit(self) -> None:
        """For Database.begin. FailedPrecondition in Database.run and transaction, which then commit nothing."""
        self._check_ends("commit")
        self._transaction.commit()

    def rollback(self) -> None:
        """Drops the changes and forgets the reads: the transaction is as if it had just begun, also after commit. For
        Database.begin, as commit."""
        self._check_ends("rollback")
        self._transaction.rollback()

    def _check_ends(self, called: str) -> None:
        if self._ended_by:
            self._refused = FailedPrecondition(f"{called} was called in {self._ended_by}, so nothing is committed: "
                                               f"{self._ended_by} ends its transaction itself")
            raise self._refused

    def _commit(self) -> None:
        """By what ends it."""
        if self._refused is not None:
            raise self._refused
        self._transaction.commit()

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

    def create_table(self, name: str, *, key: KeyForm = int, max_key_bytes: int = 64, index: str = "xstore",
                     payload: Any = None, max_payload: int = 4096, expected_rows: int = 1024,
                     application: str = "") -> Table:
        """Makes a table, durably; or returns the one of this name, if it is defined so: InvalidArgument names what
        differs.

        key: int, gannet.signed (int that may be negative), or byte keys of at most max_key_bytes: str, bytes, tuple, or
            the types of its fields, as (str, int). The directory keeps it; int and bytes leave what it has.
        index: 'hash' (no order), 'xstore' (ordered), 'catfish' (rectangles), 'blink', 'rolex', 'dex',
            'dolphin'.
        payload: the bytes of every row, or a numpy dtype; None: rows of any length up to max_payload.
        """
        form = _form_of(key)
        integer = _is_integer_form(form)
        _check("name", name, str)
        _check("index", index, str)
        _check("application", application, str)
        variable = payload is None
        dtype = None if variable or _is_integer(payload) else _dtype_of(payload)
        size = _integer("max_payload", max_payload) if variable else (
            operator.index(payload) if dtype is None else dtype.itemsize)
        most = 40 if index == "catfish" else _integer("max_key_bytes", max_key_bytes)
        rows = _integer("expected_rows", expected_rows)
        try:
            made = self._database.create_table(name, integer, most, index, size, variable, rows, application, form)
        except AlreadyExists:
            found = self._database.find_table(name)
            if found is None:
                raise
            plain = "int" if found.integer_keys else "bytes"
            asked_key = form.partition(":")[0]
            # A plain form, of either, fits any other one of the same kind of keys.
            any_form = integer == found.integer_keys and plain in (asked_key, found.key_form)
            asked = {"key": asked_key, "max_key_bytes": found.max_key_bytes if integer else most, "index": index,
                     "payload": (size, "at most" if variable else "exactly")}
            there = {"key": asked_key if any_form else found.key_form, "max_key_bytes": found.max_key_bytes,
                     "index": found.index,
                     "payload": (found.payload_bytes, "at most" if found.variable_length else "exactly")}
            for option, value in asked.items():
                if value != there[option]:
                    raise InvalidArgument(f"table '{name}' exists with another {option}: {there[option]}, "
                                          f"not {value}") from None
            made = found
        return Table(made, dtype, key)

    def table(self, name: str, dtype: Any = None, *, key: Optional[KeyForm] = None) -> Table:
        """The table of this name; NotFound if there is none. With a dtype its rows are numpy scalars. key: the form of
        the keys that it gives back, as for create_table; None: that of the directory."""
        _check("name", name, str)
        found = self._database.find_table(name)
        if found is None:
            raise NotFound(f"there is no table '{name}'")
        return Table(found, dtype, key)

    def tables(self) -> List[Table]:
        """In the order of their creation."""
        return [self.table(name) for name in self._database.tables()]

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

    # ---- Secondary indexes

    def create_index(self, name: str, table: Table, fields: Union[str, Field, Sequence[Union[str, Field]]], *,
                     unique: bool = False) -> Index:
        """Makes a secondary index of a table's rows, while transactions run, durably; or returns the one of this name,
        if it is defined so. fields: a name in the table's dtype, a gannet.Field, or several of both.

        InvalidArgument names what is wrong, or differs. AlreadyExists: two rows have one key of a unique index, or
        there is a table of this name. DeadlineExceeded: a transaction stayed open for 30 s.
        """
        _check("name", name, str)
        native = _native(table)
        several = [fields] if isinstance(fields, (str, Field)) else list(fields)
        described = [_index_field_of(table, field) for field in several]
        try:
            made = self._database.create_index(name, native, described, bool(unique))
        except AlreadyExists:
            found = self._database.find_index(name)
            if found is None or not found.is_complete:
                raise
            for option, asked, there in (("table", table.name, found.table), ("fields", described, found.fields),
                                         ("uniqueness", bool(unique), found.unique)):
                if asked != there:
                    raise InvalidArgument(f"index '{name}' exists with another {option}: {there}, "
                                          f"not {asked}") from None
            made = found
        return Index(made, table)

    def index(self, name: str, table: Optional[Table] = None) -> Index:
        """The index of this name; NotFound if there is none. table: that of its rows, if they have a dtype, or its keys
        a form."""
        _check("name", name, str)
        found = self._database.find_index(name)
        if found is None:
            raise NotFound(f"there is no index '{name}'")
        if table is not None and table.name != found.table:
            raise ValueError(f"index '{name}' is one of table '{found.table}', not of '{table.name}'")
        return Index(found, self.table(found.table) if table is None else table)

    def indexes(self) -> List[Index]:
        """In the order of their creation."""
        return [self.index(name) for name in self._database.indexes()]

    def drop_index(self, name: str) -> None:
        """Removes the index for good, as drop_table a table."""
        self.index(name)
        self._database.drop_table(name)

    # ---- Transactions

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One attempt: commits at the end of the block, and rolls back if an exception leaves it.

        Aborted, from the block or its end, says that it met another transaction and is to be run again: use run, or
        transactional, where that may happen.
        """
        with contextlib.closing(self._database.begin()) as begun:
            made = Transaction(begun, "transaction")
            yield made
            made._commit()

    def run(self, body: Callable[Concatenate[Transaction, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """body(transaction, ...), committed; returns its result. After a conflict it runs again.

        So it has no effects outside of the database. If it raises an exception, the transaction is rolled back, and the
        exception is raised here if what the body had read was current; else the body runs again.
        """
        with contextlib.closing(self._database.begin()) as begun:
            while True:
                try:
                    made = Transaction(begun, "run")
                    try:
                        result = body(made, *args, **kwargs)
                    except Aborted:
                        raise
                    except Exception:
                        begun.validate()
                        raise
                    made._commit()
                    return result
                except Aborted:
                    begun.try_again()

    def transactional(self, body: Callable[Concatenate[Transaction, _P], _T]) -> Callable[_P, _T]:
        """A decorator: calls of the function give it a transaction as its first argument, as run does."""

        @functools.wraps(body)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
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

    def backup(self, directory: Union[str, bytes, "os.PathLike[Any]"]) -> None:
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
        directory: Union[str, bytes, "os.PathLike[Any]", None] = None, *, create: bool = False,
        durability: str = "sync", memory_bytes: int = 8 << 30,
        checkpoint_every: Optional[float] = None, group_commit: Optional[float] = None,
        durable_within: Optional[float] = None, largest_transaction_bytes: Optional[int] = None,
        recovery_threads: Optional[int] = None, open_transactions: Optional[int] = None,
        application: Optional[str] = None, salvage: bool = False,
        on_event: Optional[Callable[[str, str], Any]] = None) -> Database:
    """Opens the database in a directory, and recovers it; None: a database in memory only.
    A directory is a str, bytes, or a path object.

    create=True: make it if there is none (otherwise NotFound).
    durability: 'sync' (a commit returns when it is durable), 'async' (a crash may lose the last milliseconds), 'none'.
    memory_bytes: address space for rows and indexes; 8 GiB.
    checkpoint_every, group_commit, durable_within: seconds.
    largest_transaction_bytes, recovery_threads, open_transactions (at a time; 64), application (a note).
    salvage=True: of a damaged directory, recover what is left; on_event gets a warning for each part that is left out.
    on_event(level, text): called with rare events, for the log of the program: what recovery did and which damage it
    met, automatic checkpoints, a disk that is full or fails and that works again. The level is 'info', 'warning' or
    'error'. Any thread calls it, from open until close has returned. It must return soon, and must not use the
    database. An exception in it goes to sys.unraisablehook. It is not called any more when Python exits.
    """
    _check("durability", durability, str)
    if on_event is not None and not callable(on_event):
        raise TypeError(f"on_event is {on_event!r}: a function")
    options: Dict[str, Any] = {"create": bool(create), "durability": durability, "salvage": bool(salvage),
                               "on_event": on_event}
    for name, count in (("memory_bytes", memory_bytes), ("largest_transaction_bytes", largest_transaction_bytes),
                        ("recovery_threads", recovery_threads), ("open_transactions", open_transactions)):
        if count is not None:
            options[name] = _integer(name, count)
    for name, seconds in (("checkpoint_every", checkpoint_every), ("group_commit", group_commit),
                          ("durable_within", durable_within)):
        if seconds is not None:
            if isinstance(seconds, bool) or not hasattr(type(seconds), "__float__"):
                raise TypeError(f"{name} is {seconds!r}: a number of seconds")
            options[name] = float(seconds)
    if application is not None:
        _check("application", application, str)
        options["application"] = application
    return Database(_gannet.open(None if directory is None else os.fsencode(directory), options))


# ---- Arguments


def _check(name: str, value: Any, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise TypeError(f"{name} is {value!r}: a {wanted.__name__}")


def _is_integer(value: Any) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def _integer(name: str, value: Any) -> int:
    if not _is_integer(value):
        raise TypeError(f"{name} is {value!r}: an int")
    number = operator.index(value)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{name} is {number}: at least 0, and less than 2**64")
    return number


def _native(table: Table) -> _gannet.Table:
    if not isinstance(table, Table):
        raise TypeError(f"table is {table!r}: a gannet.Table, as db.table(name) returns it")
    return table._table


def _place(place: Any) -> Tuple[Table, Any]:
    if not isinstance(place, tuple) or len(place) != 2 or not isinstance(place[0], Table):
        raise TypeError(f"t[{place!r}]: t[table, key], or t[table][key]")
    return place[0], place[1]


def _table_of(over: Union[Table, Index]) -> Table:
    return over.table if isinstance(over, Index) else over


def _key_of(over: Union[Table, Index], key: Any) -> Any:
    """A key of an index of fields is a tuple."""
    by_fields = isinstance(over, Index) and over._has_fields
    return (key,) if by_fields and key is not None and not isinstance(key, tuple) else key


# Forms of keys without fields, by the name that the module has.
_KEYS_OF: Dict[str, KeyForm] = {"int": int, "signed": signed, "bytes": bytes, "str": str, "tuple": tuple}


def _is_integer_form(form: str) -> bool:
    return form in ("int", "signed")


def _form_of(key: Any) -> str:
    """The form of keys, as the module has it."""
    for form, simple in _KEYS_OF.items():
        if key is simple:
            return form
    if isinstance(key, tuple) and key and all(field in (int, float, bool, str, bytes) for field in key):
        return "tuple:" + "".join("b" if field is bytes else "s" for field in key)
    raise TypeError(f"key is {key!r}: int, gannet.signed, str, bytes, tuple, or a tuple of int, float, bool, str and "
                    "bytes")


def _dtype_of(dtype: Any) -> Any:
    if dtype is None:
        return None
    import numpy
    return numpy.dtype(dtype)


def _field_of(table: Table, name: str) -> Tuple[Any, int]:
    """The dtype and the offset of a field of the table's dtype."""
    fields = table.dtype.fields if table.dtype is not None else None
    if not fields:
        raise TypeError(f"table '{table.name}' has no dtype with fields, so none is called {name!r}: give its dtype to "
                        "db.table, or use gannet.Field")
    if name not in fields:
        raise ValueError(f"the dtype of table '{table.name}' has no field {name!r}: it has {', '.join(fields)}")
    dtype, offset = fields[name][:2]
    return dtype, offset


def _index_field_of(table: Table, field: Union[str, Field]) -> Tuple[bool, str, int, int]:
    """A field of an index, as the module has it."""
    if isinstance(field, str):
        dtype, offset = _field_of(table, field)
        of_key = False
    elif isinstance(field, Field):
        dtype, offset, of_key = _dtype_of(field.dtype), _integer("offset", field.offset), field.of_key
    else:
        raise TypeError(f"field is {field!r}: the name of one in the table's dtype, or a gannet.Field")
    types = {"u": "unsigned", "b": "unsigned", "i": "signed", "M": "signed", "m": "signed", "f": "floating",
             "S": "text", "V": "bytes"}
    # A number of the machine's own byte order is '=', which is little-endian here; '|': it has none.
    if dtype.kind not in types or dtype.names or dtype.subdtype or dtype.byteorder == ">":
        raise TypeError(f"field {field!r} is {dtype}: an index has integers, floats, S and V of numpy, little-endian")
    return of_key, types[dtype.kind], offset, dtype.itemsize
