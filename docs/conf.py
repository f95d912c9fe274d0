"""Settings of the documentation site; `make docs` builds it."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

# Executed pages call `chordal`, and progress bars would be part of what they print.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ.update(NO_COLOR="1", COLUMNS="100", PYTHONWARNINGS="ignore")
os.environ.pop("CHORDAL_DATA", None)  # pages show what every reader can repeat

project = "chordal"
author = "the chordal developers"
project_copyright = author
version = release = version_of("chordal")
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "code_breaks",
    "code_links",
    "executed_pages",
    "generated_reference",
    "mathml",
]
exclude_patterns = ["_build", "_extensions", "**.ipynb_checkpoints"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image", "smartquotes"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

nb_execution_mode = "force"  # of the pages that are read again, all of them in a first build
nb_execution_in_temp = True  # a folder for each page
nb_execution_timeout = 180
nb_execution_show_tb = True
nb_merge_streams = True

default_role = "literal"  # `code_links` makes links of names
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "chordal"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_static_path = ["_static"]
html_css_files = ["chordal.css"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "text": "chordal",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "back_to_top_button": True,
}
html_sidebars = {"index": []}
