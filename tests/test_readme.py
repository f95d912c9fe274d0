"""The README's examples run, in order, as one program."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    exec(compile("\n".join(blocks), str(README), "exec"), names)
    assert names["search"].best_params_["l2"] in (0.1, 1.0, 10.0)


def test_its_links_lead_somewhere():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (README.parent / target).exists(), target
