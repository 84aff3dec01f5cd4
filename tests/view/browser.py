"""A browser without a window: it opens files, takes pictures of them and writes down what it asks the network for."""

import re
import shutil
import subprocess

import numpy as np
import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip


def browse(folder, address, *options):
    """Open an address for one and a half seconds of the page's own time; what the browser prints."""
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome here: that a browser shows the animation was not tested")
    command = [
        BROWSER,
        *QUIET,
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=1500",
        *options,
        address,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def picture(folder, path, time, *options):
    """Decoded pixels of the page at a time of the motion; the machine is in the left half."""
    from matplotlib.image import imread

    shot = folder / f"{path.stem}-{time}.png"
    browse(folder, f"{path.as_uri()}#t={time}", f"--screenshot={shot}", "--window-size=1000,700", *options)
    return (imread(shot)[..., :3] * 255).round().astype(int)


def changed(one, other):
    """Part of the pixels that differ visibly."""
    return float(np.mean(np.abs(one - other).max(axis=-1) > 30))


# the browser's own errands go to its maker
MAKER = re.compile(r"^https?://(~notfound|([\w-]+\.)*(google|googleapis|gvt1)\.com)(/|:|$)")


def requests(folder, path):
    """Addresses beyond the file itself that a page makes the browser ask for, and the page as it stands then."""
    log = folder / f"{path.stem}-net.json"
    dom = browse(folder, path.as_uri(), f"--log-net-log={log}", "--dump-dom")
    asked = set(re.findall(r'"url":"((?:http|ws|ftp)[^"]*)"', log.read_text()))
    return {address for address in asked if not MAKER.match(address)}, dom
