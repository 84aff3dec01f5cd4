"""Files that survive the process: named by what they were made from and by what they contain.

A file is called `<key>-<digest of its content>.<kind>`. It is written under another name and renamed, so that many
processes may do this at once; what does not match its own digest is damaged and counts as absent.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
from pathlib import Path


def folder() -> Path:
    """Where compiled machines are kept: SARRUS_CACHE, or the user's cache folder, or a temporary one."""
    named = os.environ.get("SARRUS_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for place in [named] if named else [os.path.join(home, "sarrus")]:
        with contextlib.suppress(OSError):
            os.makedirs(place, exist_ok=True)
            if os.access(place, os.W_OK):
                return Path(place)
    return _temporary()


def _temporary() -> Path:
    """This user's own temporary folder: machine code must not come from where others can write."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    place = Path(tempfile.gettempdir()) / f"sarrus-{user}"
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700)
    with contextlib.suppress(OSError):
        facts = place.lstat()
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == user and not facts.st_mode & 0o077:
            return place
    return _private(tempfile.gettempdir())


@functools.cache
def _private(base: str) -> Path:
    """A folder of this process alone, made once."""
    return Path(tempfile.mkdtemp(prefix="sarrus-", dir=base))


def key_of(*parts: str | bytes) -> str:
    """A key for what a file is made from."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()[:32]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def fetch(key: str, kind: str) -> tuple[Path, bytes] | None:
    """The intact file of this key, or None. Damaged ones are removed."""
    for path in sorted(folder().glob(f"{key}-*.{kind}")):
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if path.stem == f"{key}-{_digest(content)}":
            return path, content
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def store(key: str, kind: str, content: bytes) -> Path:
    """Write a file for this key, all at once."""
    target = folder() / f"{key}-{_digest(content)}.{kind}"
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return target
