"""Loads some cities into a database, finds some, and plots them.

    python3 cities.py [DIRECTORY [PICTURE.png]]     # without a directory in memory; without a picture as text

Each step prints what it does, so the program reads like a notebook. The picture needs matplotlib.
"""

import sys
from typing import Any, List, Optional

import numpy

import gannet

CITY = numpy.dtype([("longitude", "<f8"), ("latitude", "<f8"), ("people", "<i8")])

CITIES = [
    ("Amsterdam", 4.9, 52.37, 921_000), ("Athens", 23.73, 37.98, 643_000), ("Berlin", 13.4, 52.52, 3_755_000),
    ("Bern", 7.45, 46.95, 134_000), ("Bologna", 11.34, 44.49, 390_000), ("Brussels", 4.35, 50.85, 1_222_000),
    ("Copenhagen", 12.57, 55.68, 644_000), ("Dublin", -6.26, 53.35, 592_000), ("Hamburg", 9.99, 53.55, 1_892_000),
    ("Helsinki", 24.94, 60.17, 658_000), ("Lisbon", -9.14, 38.72, 545_000), ("London", -0.13, 51.51, 8_866_000),
    ("Madrid", -3.7, 40.42, 3_332_000), ("Oslo", 10.75, 59.91, 709_000), ("Paris", 2.35, 48.86, 2_103_000),
    ("Prague", 14.42, 50.08, 1_357_000), ("Rome", 12.5, 41.9, 2_755_000), ("Stockholm", 18.07, 59.33, 985_000),
    ("Vienna", 16.37, 48.21, 2_006_000), ("Warsaw", 21.01, 52.23, 1_863_000), ("Zürich", 8.54, 47.38, 443_000),
]


def main() -> None:
    directory = sys.argv[1] if len(sys.argv) > 1 else None
    picture = sys.argv[2] if len(sys.argv) > 2 else None
    with gannet.open(directory, create=True) as db:
        cities = db.create_table("cities", key=str, payload=CITY)

        print("== Load: one transaction, all or nothing")
        with db.transaction() as t:
            for name, longitude, latitude, people in CITIES:
                t[cities, name] = (longitude, latitude, people)

        print("== One city")
        with db.transaction() as t:
            print("Zürich:", t[cities, "Zürich"])

        print("== Those that begin with B, in order")
        with db.transaction() as t:
            for name, city in t.scan(cities, prefix="B"):
                print(f"{name}: {city['people']:,} people")

        print("== The largest, by an index of its people, which the engine keeps")
        by_people = db.create_index("by_people", cities, "people")
        with db.transaction() as t:
            for name in t.keys(by_people, 3_000_000, reverse=True):
                print(name)

        print("== A move: runs again if another thread changes one of the cities meanwhile")

        @db.transactional
        def move(t: gannet.Transaction, people: int, origin: str, destination: str) -> None:
            t.add(cities, origin, -people, "people")
            t.add(cities, destination, people, "people")

        move(1000, "Paris", "Bern")

        print("== All rows as one array")
        with db.transaction() as t:
            names, rows = t.array(cities)
        print(f"{rows['people'].sum():,} people in {len(names)} cities; the northernmost is",
              names[rows["latitude"].argmax()])
        plot(names, rows, picture)


def plot(names: List[str], rows: Any, picture: Optional[str]) -> None:
    if picture is None:
        plot_as_text(rows)
        return
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.scatter(rows["longitude"], rows["latitude"], s=rows["people"] / 20_000, alpha=0.5)
    for name, row in zip(names, rows):
        pyplot.annotate(name, (row["longitude"], row["latitude"]), fontsize=7)
    pyplot.xlabel("longitude")
    pyplot.ylabel("latitude")
    pyplot.savefig(picture, dpi=150)
    print("== Plotted to", picture)


def plot_as_text(rows: Any, width: int = 60, height: int = 14) -> None:
    grid = numpy.full((height, width), " ")
    x = numpy.interp(rows["longitude"], (rows["longitude"].min(), rows["longitude"].max()), (0, width - 1)).astype(int)
    y = numpy.interp(rows["latitude"], (rows["latitude"].min(), rows["latitude"].max()), (height - 1, 0)).astype(int)
    grid[y, x] = numpy.where(rows["people"] > 2_000_000, "O", "o")
    print("\n".join("".join(line).rstrip() for line in grid))


if __name__ == "__main__":
    main()
