"""The rules of the source tree, as functions that return a list of violations.

`test_layers.py` runs them on this repository, and on small trees with a planted violation, which
they must find. Each violation is one line: the file, then what is wrong with it.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Order = list[list[str]]
# A file, its unit, and a unit that it uses.
Edge = tuple[str, str, str]
# For each file, the files that it uses.
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
# A function or constant that other files can see; its definition begins in the first column.
C_DEFINITION = re.compile(
    r"^(?!static\b|typedef\b|extern\b)[A-Za-z_][\w \t*]*?\b(rdmeta_\w+)"
    r"(?:\([^;{}]*\)\s*\{|[ \t]*=)",
    re.MULTILINE,
)
# A path that begins with a directory of one machine or user.
MACHINE_PATH = re.compile(r"/(?<![\w.$/>}-]/)(?:work|farm|root|home|Users)/\w")


def written_files(root: Path) -> list[Path]:
    """Returns the files that people write: those that git does not ignore, or all of an sdist."""
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
    """Returns edges against the order, units that the order lacks, and cycles between files."""
    rank = {unit: place for place, unit in enumerate(u for row in order for u in row)}
    found = set()
    for file, user, used in edges:
        missing = [unit for unit in (user, used) if unit not in rank]
        if missing:
            found |= {f"{file}: {unit} is not in layers.toml" for unit in missing}
        elif rank[used] > rank[user]:
            found.add(f"{file}: {user} uses {used}, a later layer")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        found.add(f"cycle: {' -> '.join(cycle.args[1])}")
    return sorted(found)


def c_layer_violations(csrc: Path, folders: list[str]) -> list[str]:
    """Returns includes and calls in csrc/ that break the order of its folders or form a cycle.

    A unit is NAME.c with NAME.h. The public headers are one unit, and so is each vendored project.
    """
    found: list[str] = []
    texts = {
        path.relative_to(csrc).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(csrc.rglob("*.[ch]"))
    }
    found += [f"{file}: lies in no folder of layers.toml" for file in texts if not c_folder(file)]
    found += [
        f"{file}: {c_folder(file)} is not in layers.toml"
        for file in texts
        if c_folder(file) and c_folder(file) not in folders
    ]
    owners = {
        name: file
        for file, text in texts.items()
        if c_folder(file) not in {"include", "vendor"}
        for name in c_definitions(text)
    }
    graph: Graph = {}
    for file, text in texts.items():
        used = []
        for include in C_INCLUDE.findall(text):
            target = c_included(csrc, file, include)
            if target is None:
                found.append(f"{file}: includes {include}, which is not in csrc")
            else:
                used.append((f"includes {include}", target))
        if c_folder(file) not in {"include", "vendor"}:
            used += [(f"uses {name}", owners[name]) for name in c_names(text) if name in owners]
        for how, target in used:
            if not {c_folder(file), c_folder(target)} <= set(folders):
                continue
            if folders.index(c_folder(target)) > folders.index(c_folder(file)):
                found.append(f"{file}: {how} of {c_folder(target)}, a later folder")
            elif c_unit(target) != c_unit(file):
                graph.setdefault(c_unit(file), set()).add(c_unit(target))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        found.append(f"cycle: {' -> '.join(cycle.args[1])}")
    return sorted(set(found))


def c_folder(file: str) -> str:
    """Returns the folder of a file of csrc/; empty if it lies in none."""
    return file.partition("/")[0] if "/" in file else ""


def c_unit(file: str) -> str:
    """Returns the unit of a file of csrc/."""
    if c_folder(file) in {"include", "vendor"}:
        return file.rpartition("/")[0]
    return file.rpartition(".")[0]


def c_included(csrc: Path, file: str, include: str) -> str | None:
    """Returns the file of csrc/ that an include names: by its path in csrc/, or a public header.

    A vendored file also includes files of its own folder by their names.
    """
    places = [csrc, csrc / "include"]
    if c_folder(file) == "vendor":
        places.append((csrc / file).parent)
    for place in places:
        target = (place / include).resolve()
        if target.is_file() and target.is_relative_to(csrc.resolve()):
            return target.relative_to(csrc.resolve()).as_posix()
    return None


def c_definitions(text: str) -> set[str]:
    """Returns the names of functions and constants that other files can see."""
    return set(C_DEFINITION.findall(C_COMMENT_OR_STRING.sub(blanked, text)))


def c_names(text: str) -> set[str]:
    """Returns every name in a file of C, except tags of structures."""
    bare = C_COMMENT_OR_STRING.sub(blanked, text)
    return set(re.findall(r"\b\w+\b", re.sub(r"\b(?:struct|union|enum)\s+\w+", "", bare)))


def python_layer_violations(package: Path, order: Order) -> list[str]:
    """Returns imports of a package that break the order or form a cycle, Cython's included.

    An import inside a function, or under TYPE_CHECKING, counts like any other.
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
        # The extension includes this file's text, so the file belongs to the extension.
        if path.suffix == ".pxi":
            inside = Path("_core.pyx")
        unit = inside.parts[0].split(".")[0]
        me = ".".join((top, *inside.with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        edges.append((file, unit, unit))
        if path.suffix in {".pyx", ".pxd", ".pxi"}:
            imports = cython_imports(text)
            found += [
                f"{file}: uses {header} of csrc; bindings may use only public headers"
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
    """Yields each imported module, a relative one with its dots, and the names taken from it."""
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
    """Yields the same for .pyx and .pxd, which Python cannot parse."""
    for module, names in CYTHON_FROM.findall(text):
        yield module, re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", names)
    for names in CYTHON_IMPORT.findall(text):
        for name in names.split(","):
            yield name.split()[0], []


def resolved(
    imports: Iterable[tuple[str, list[str]]], package: str, modules: set[str]
) -> Iterator[str]:
    """Yields the absolute modules that imports name: a submodule rather than its package."""
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
    """Returns the lines over 80 columns and the functions over 80 lines of a C file."""
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
    """Yields the first and last line of each function's body, braces included."""
    bare = C_COMMENT_OR_STRING.sub(blanked, text)
    depth, start, before = 0, None, ""
    line = 1
    for char in bare:
        if char == "\n":
            line += 1
        elif char == "{":
            if depth == 0 and before == ")":
                start = line
            # A block of declarations, extern "C" {, does not count as a level.
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
    """Replaces a comment or string by blanks; newlines and a string's first quote stay."""
    blank = re.sub(r"[^\n]", " ", noise[0])
    return blank if noise[0].startswith("/") else noise[0][0] + blank[1:]


def machine_path_violations(file: str, text: str) -> list[str]:
    """Returns the lines that contain a path of one machine."""
    return [
        f"{file}:{number}: {match[0]}... is a path of one machine"
        for number, line in enumerate(text.splitlines(), 1)
        if (match := MACHINE_PATH.search(line))
    ]
