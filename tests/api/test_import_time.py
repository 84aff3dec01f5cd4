"""`import sarrus` is light: what is heavy is loaded by the first call that needs it.

The modules are counted, not the seconds: a time would depend on the machine and on what else it does.
"""

import json
import subprocess
import sys

HEAVY = {"casadi", "scipy", "rich", "mujoco", "matplotlib", "pinocchio", "hypothesis", "pytest"}


def loaded_after(statement: str) -> set[str]:
    """Run a statement in a fresh interpreter and list the top-level modules it has loaded."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in json.loads(done.stdout)}


def test_import_loads_nothing_heavy():
    # Compared with an empty run: site configuration may load modules of its own.
    loaded = loaded_after("import sarrus") - loaded_after("pass")
    assert "sarrus" in loaded
    assert not loaded & HEAVY


def test_listing_the_library_loads_nothing_heavy():
    loaded = loaded_after("import sarrus\nsarrus.library.names()") - loaded_after("pass")
    assert not loaded & HEAVY


def test_dir_shows_the_lazy_names():
    import sarrus

    assert set(sarrus.__all__) <= set(dir(sarrus))
