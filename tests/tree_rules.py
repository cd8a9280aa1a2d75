"""What the house asks of the source tree, as functions from a tree to a list of violations.

`test_layers.py` runs them on this repository and, so that they are known to bite, on small
trees with a planted violation. Each violation is one line: file, then what is wrong with it.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Order = list[list[str]]
# (a file, its unit, a unit that it names)
Edge = tuple[str, str, str]
# A file -> the files it names.
Graph = dict[str, set[str]]

C_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
CYTHON_EXTERN = re.compile(r'^[ \t]*cdef extern from "([^"]+)"', re.MULTILINE)
CYTHON_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]+)", re.MULTILINE
)
CYTHON_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([\w., \t]+)", re.MULTILINE)
C_COMMENT_OR_STRING = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.DOTALL | re.VERBOSE
)
# A directory that is somebody's own, at the start of a path.
MACHINE_PATH = re.compile(r"(?<![\w.$/>}-])/(?:work|farm|root|home|Users)/\w")


def written_files(root: Path) -> list[Path]:
    """Files of the repository that people write: those git does not ignore, or an sdist's."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [root / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [path for path in root.rglob("*") if ".egg-info" not in path.as_posix()]
    return sorted({path for path in paths if path.is_file()})


def layer_violations(edges: Iterable[Edge], graph: Graph, order: Order) -> list[str]:
    """Edges against the order, units the order lacks, and cycles between files."""
    rank = {unit: place for place, unit in enumerate(u for row in order for u in row)}
    found = set()
    for file, user, used in edges:
        missing = [unit for unit in (user, used) if unit not in rank]
        if missing:
            found |= {f"{file}: {unit} is not in layers.toml" for unit in missing}
        elif rank[used] > rank[user]:
            found.add(f"{file}: {user} knows {used}, a later layer")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        found.add(f"cycle: {' -> '.join(cycle.args[1])}")
    return sorted(found)


def c_layer_violations(csrc: Path, order: Order, parts: dict[str, list[str]]) -> list[str]:
    """Includes in csrc/ that go against the order, form a cycle, or lead outside.

    `parts` are the units that some files belong to under names of their own.
    """
    units = {unit: unit for row in order for unit in row}
    units |= {part: unit for unit, own_names in parts.items() for part in own_names}
    files = sorted(path for path in csrc.rglob("*.[ch]"))
    found: list[str] = []
    edges: list[Edge] = []
    graph: Graph = {}
    for path in files:
        file = path.relative_to(csrc).as_posix()
        unit = c_unit(file, units)
        edges.append((file, unit, unit))
        text = path.read_text(encoding="utf-8")
        for include in C_INCLUDE.findall(text):
            places = [place / include for place in (path.parent, csrc, csrc / "include")]
            targets = [place.resolve() for place in places if place.is_file()]
            if not targets or not targets[0].is_relative_to(csrc.resolve()):
                found.append(f"{file}: includes {include}, which is not in csrc")
                continue
            named = targets[0].relative_to(csrc.resolve()).as_posix()
            edges.append((file, unit, c_unit(named, units)))
            if unit != "include":
                graph.setdefault(file, set()).add(named)
    return found + layer_violations(edges, graph, order)


def c_unit(file: str, units: dict[str, str]) -> str:
    """The unit of a file of csrc/: by the longest name that it has, or is a part of.

    What others wrote is a unit by its directory in vendor/.
    """
    if file.startswith("include/"):
        return "include"
    if file.startswith("vendor/"):
        return file.split("/")[1]
    stem = file.rsplit(".", 1)[0]
    fits = [name for name in units if stem == name or stem.startswith(name + "_")]
    return units[max(fits, key=len)] if fits else stem


def python_layer_violations(package: Path, order: Order) -> list[str]:
    """Imports in a package that go against the order or form a cycle, Cython's included.

    An import inside a function, or under TYPE_CHECKING, is knowledge like any other.
    """
    top = package.name
    modules = {
        ".".join((top, *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
        for path in package.rglob("*.py*")
        if path.suffix in {".py", ".pyx"}
    }
    found: list[str] = []
    edges: list[Edge] = []
    graph: Graph = {}
    for path in sorted(package.rglob("*")):
        if path.suffix not in {".py", ".pyi", ".pyx", ".pxd", ".pxi"}:
            continue
        inside = path.relative_to(package)
        file = inside.as_posix()
        # What is included textually is a part of the extension.
        if path.suffix == ".pxi":
            inside = Path("_core.pyx")
        unit = inside.parts[0].split(".")[0]
        me = ".".join((top, *inside.with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        edges.append((file, unit, unit))
        if path.suffix in {".pyx", ".pxd", ".pxi"}:
            imports = cython_imports(text)
            found += [
                f"{file}: takes {header} from csrc; only the public rdmeta.h is for bindings"
                for header in CYTHON_EXTERN.findall(text)
                if not header.startswith("rdmeta")
            ]
        else:
            imports = python_imports(text)
        package_of_me = me if inside.stem == "__init__" else me.rpartition(".")[0]
        for module in resolved(imports, package_of_me, modules):
            if module != top and not module.startswith(top + "."):
                continue
            named = "__init__" if module == top else module.split(".")[1]
            edges.append((file, unit, named))
            if module != me:
                graph.setdefault(me, set()).add(module)
    return found + layer_violations(edges, graph, order)


def python_imports(text: str) -> Iterator[tuple[str, list[str]]]:
    """(module, names taken from it), a relative module with its dots."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, []
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and "import_module" in ast.dump(node.func):
            for arg in node.args[:1]:
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                    yield arg.value, []


def cython_imports(text: str) -> Iterator[tuple[str, list[str]]]:
    """The same for .pyx and .pxd, which Python cannot parse."""
    for module, names in CYTHON_FROM.findall(text):
        yield module, re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", names)
    for names in CYTHON_IMPORT.findall(text):
        for name in names.split(","):
            yield name.split()[0], []


def resolved(
    imports: Iterable[tuple[str, list[str]]], package: str, modules: set[str]
) -> Iterator[str]:
    """Absolute modules that the imports name: a submodule rather than its package."""
    for module, names in imports:
        dots = len(module) - len(module.lstrip("."))
        if dots:
            base = package.split(".")[: len(package.split(".")) - dots + 1]
            module = ".".join([*base, *filter(None, [module.lstrip(".")])])
        inner = [f"{module}.{name}" for name in names if f"{module}.{name}" in modules]
        yield from inner
        if len(inner) < len(names) or not names:
            yield module


def size_violations(file: str, text: str) -> list[str]:
    """In C, lines over 80 columns and functions over 80 lines."""
    found = []
    if file.endswith((".c", ".h")):
        found += [
            f"{file}:{number}: over 80 columns"
            for number, line in enumerate(text.splitlines(), 1)
            if len(line.expandtabs(8)) > 80
        ]
        found += [
            f"{file}:{first}: a function of {last - first + 1} lines, 80 are the most"
            for first, last in c_functions(text)
            if last - first + 1 > 80
        ]
    return found


def c_functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function's body, braces included."""
    bare = C_COMMENT_OR_STRING.sub(blanked, text)
    depth, start, before = 0, None, ""
    line = 1
    for char in bare:
        if char == "\n":
            line += 1
        elif char == "{":
            if depth == 0 and before == ")":
                start = line
            # A block of declarations, extern "C" {, is no level of its own.
            if before != '"' or depth:
                depth += 1
        elif char == "}":
            depth = max(depth - 1, 0)
            if depth == 0 and start is not None:
                yield start, line
                start = None
        if not char.isspace():
            before = char


def blanked(noise: re.Match[str]) -> str:
    """A comment or string as blanks, newlines kept; a string keeps its first quote."""
    blank = re.sub(r"[^\n]", " ", noise[0])
    return blank if noise[0].startswith("/") else noise[0][0] + blank[1:]


def machine_path_violations(file: str, text: str) -> list[str]:
    """Lines that name a path of one machine."""
    return [
        f"{file}:{number}: {match[0]}... is a path of one machine"
        for number, line in enumerate(text.splitlines(), 1)
        if (match := MACHINE_PATH.search(line))
    ]
