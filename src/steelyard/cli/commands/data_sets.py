"""`steelyard list data`: the known data sets, and which files of one are read."""

from typing import Any

from steelyard.catalog import workloads
from steelyard.cli.commands import selection
from steelyard.inputs.data import DataSet, find, list_data
from steelyard.inputs.data.layouts import Layout, example_of
from steelyard.plan.options import Options


def rows(options: Options, name: str) -> list[dict[str, Any]]:
    """Return a row for every data set, or all facts about one. UserError: there is no data set with that name."""
    readers: dict[str, list[str]] = {}
    for workload in workloads.find(options.workload_folders).values():
        for preset in workload.presets.values():
            readers.setdefault(preset.data.get("name", ""), []).append(f"{workload.name}:{preset.name}")
    return [_row(each, readers.get(each.name, []), bool(name)) for each in ([find(name)] if name else list_data())]


def _row(data_set: DataSet, presets: list[str], in_full: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "data": data_set.name,
        "title": data_set.title,
        "presets": presets,
        "source": data_set.home,
    }
    if in_full:
        optional = [{"path": example_of(path), "format": text} for path, text in data_set.optional]
        layouts = list(map(_layout, data_set.readable))
        row |= {"terms": data_set.terms, "fetched": data_set.fetched, "layouts": layouts, "optional": optional}
    return row


def _layout(layout: Layout) -> dict[str, Any]:
    """Return the place of a layout below the folder of --data, and its files: in a folder, in an archive, or a single file.

    In `path`, <class> stands for any name; `example` has a real name. `or`: an alternative form of the files.
    """
    files = [
        {
            "path": part.forms[0],
            "or": part.forms[1:],
            "example": part.example,
            "split": part.split,
            "format": part.format,
        }
        for part in layout.parts
    ]
    return {"layout": layout.name, "path": example_of(layout.path), "format": layout.format, "files": files}


def show(row: dict[str, Any]) -> None:
    """Print all facts about one data set, then the files of every layout as a tree."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    facts = {
        row["data"]: row["title"],
        "presets": ", ".join(row["presets"]) or "none",
        "official data": row["source"],
        "terms": row["terms"],
        "without --data": row["fetched"],
    }
    selection.print_table([(f"[bold]{name}[/]", escape(text)) for name, text in facts.items()], "", "")
    console.print(
        "\nThe folder DIR of --data DIR holds one of these layouts, or is itself the folder or the file below DIR."
    )
    for number, layout in enumerate(row["layouts"], 1):
        console.print(f"\n[bold]{number}. {escape(layout['layout'])}[/]")
        selection.print_table([map(escape, line) for line in _tree(layout)], "file", "example", "split", "format")
    if row["optional"]:
        console.print("\n[bold]Used if it is beside the data[/]")
        selection.print_table([(escape(each["path"]), escape(each["format"])) for each in row["optional"]], "", "")


def _tree(layout: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the lines of a layout: (indented name, an example of it, split, format). Folders have neither split nor format."""
    lines = [(f"DIR/{layout['path']}", "", "", layout["format"])]
    shown: set[str] = set()
    for file in layout["files"]:
        names, examples = file["path"].split("/"), file["example"].split("/")
        for depth, (name, example) in enumerate(zip(names, examples, strict=True), 1):
            path, last = "/".join(names[:depth]), depth == len(names)
            if path not in shown:
                shown.add(path)
                form = "".join(f"; or {other}" for other in file["or"])
                about = (file["split"], file["format"] + form) if last else ("", "")
                lines.append((f"{'  ' * depth}{name}{'' if last else '/'}", example if example != name else "", *about))
    return lines
