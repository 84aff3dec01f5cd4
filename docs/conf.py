"""Settings of the manual (Sphinx, MyST, furo). The build needs no network."""

import contextlib
import importlib.util
import io
import re
from importlib.metadata import version as _version
from pathlib import Path

project = "Sarrus"
author = "The Sarrus contributors"
project_copyright = author
release = version = _version("sarrus")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "myst_parser"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_made"]
html_theme = "furo"
html_title = "Sarrus"
html_show_copyright = False

autoclass_content = "both"  # some classes explain their arguments at the constructor
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# As a field list, so that an attribute in a docstring is not a second description of a dataclass field.
napoleon_use_ivar = True

_INLINE_MATH = re.compile(r"(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?![\w$])")


def _math_in_docstrings(_app, _what, _name, _obj, _options, lines):
    """Let docstrings write formulas between dollar signs, as the pages of this manual do."""
    out = []
    block_indent = None
    for line in lines:
        text, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if block_indent is not None:  # inside $$ ... $$
            closes = text.endswith("$$")
            out.append(f"{block_indent}   {text.removesuffix('$$').strip()}".rstrip())
            if closes:
                out.append("")
                block_indent = None
        elif text.startswith("$$"):
            body = text[2:]
            one_line = body.endswith("$$")
            out += ["", f"{indent}.. math::", "", f"{indent}   {body.removesuffix('$$').strip()}".rstrip()]
            if one_line:
                out.append("")
            else:
                block_indent = indent
        else:
            out.append(_INLINE_MATH.sub(r":math:`\1`", line))
    lines[:] = out


def _run_examples(app):
    """Run every script of examples/ and keep what it prints and draws for the manual, so that neither can go stale."""
    made = Path(app.srcdir) / "_made"
    made.mkdir(exist_ok=True)
    for path in sorted((Path(app.srcdir) / "examples").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            spec.loader.exec_module(module)
            results = module.main()
        (made / f"{path.stem}.txt").write_text(printed.getvalue(), encoding="utf-8")
        if hasattr(module, "draw"):
            module.draw(results).savefig(made / f"{path.stem}.svg", metadata={"Date": None})


def setup(app):
    """Register the examples, and the docstring filter ahead of napoleon, which runs at priority 500."""
    app.connect("builder-inited", _run_examples)
    app.connect("autodoc-process-docstring", _math_in_docstrings, priority=400)
