"""What tables there are."""

from __future__ import annotations

from dataclasses import dataclass

from . import _tipsim


@dataclass(frozen=True)
class Column:
    """A column: its unit is empty for numbers and names of things."""

    name: str
    type: str
    nullable: bool
    unit: str
    about: str


@dataclass(frozen=True)
class TableSchema:
    """A table: `about` says what a row is."""

    name: str
    about: str
    columns: tuple[Column, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.about}"]
        for column in self.columns:
            unit = f" [{column.unit}]" if column.unit else ""
            lines.append(f"  {column.name}: {column.type}{' or null' if column.nullable else ''}{unit}: {column.about}")
        return "\n".join(lines)


def schema() -> dict[str, TableSchema]:
    """Every table by its name. The same is in the metadata of each table's Arrow schema (`about`, and of columns `unit`)."""
    return {
        table["name"]: TableSchema(table["name"], table["about"], tuple(Column(**column) for column in table["columns"]))
        for table in _tipsim.tables()
    }
