"""What a type checker says about programs that use the package: types_test.sh checks it, nothing runs it. A line with
an ignored error must have that error."""

from typing import Any

import gannet


def use(db: gannet.Database, people: gannet.Table) -> None:

    @db.transactional
    def rename(t: gannet.Transaction, old: str, new: str = "new") -> int:
        t[people, new] = t[people, old]
        return len(new)

    length: int = rename("a", new="b")
    wrong: str = rename("a", "b")  # type: ignore[assignment]
    rename()  # type: ignore[call-arg]
    rename(5)  # type: ignore[arg-type]
    db.run(rename, "a", "b")  # type: ignore[arg-type, call-arg]

    def body(t: gannet.Transaction, number: int) -> bool:
        return (people, number) in t and number in t[people]

    found: bool = db.run(body, 5)
    db.run(body, "five")  # type: ignore[arg-type]

    by_mail: gannet.Index = db.create_index("by_mail", people, ["mail", gannet.Field("<i8", 8)], unique=True)
    db.create_index("by_mail", people, 5)  # type: ignore[arg-type]
    with db.transaction() as t:
        t.get(by_mail, 1)  # type: ignore[arg-type]
        row: Any = t.get_by(by_mail, "ann")
        for key, row in t.scan(by_mail, prefix=("ann",)):
            print(key, row, length, wrong, found)
        for t_itself in t:  # type: ignore[misc]
            print(t_itself)


def make() -> gannet.Database:
    gannet.open("/nowhere", durability=3)  # type: ignore[arg-type]
    gannet.open("/nowhere", memory=5)  # type: ignore[call-arg]
    db = gannet.open("/nowhere", create=True, checkpoint_every=1)
    db.create_table("people", key=(str, int))
    db.create_table("people", key=5)  # type: ignore[arg-type]
    db.create_table("numbers", key=gannet.signed)
    return db
