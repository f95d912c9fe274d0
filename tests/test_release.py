"""What `make release-check` says of wheels and links."""

import runpy
from pathlib import Path

CHECK = runpy.run_path(str(Path(__file__).parents[1] / "tools/release_check.py"))


def test_wheels_that_are_missing():
    missing = CHECK["missing_wheels"]
    everything = [
        f"chordal-0.1.0-{python}-{platform}.whl"
        for python in ("cp310-cp310", "cp311-cp311", "cp312-abi3", "cp314-cp314t")
        for platform in (
            "manylinux_2_27_x86_64.manylinux_2_28_x86_64",
            "manylinux_2_28_aarch64",
            "macosx_11_0_x86_64",
            "macosx_11_0_arm64",
            "win_amd64",
        )
    ]
    assert missing(everything) == []
    assert missing(everything[1:]) == ["cp310-cp310 manylinux x86-64"]
    assert "cp312-abi3 manylinux x86-64" in missing(["chordal-0.1.0-cp312-abi3-linux_x86_64.whl"])
    assert len(missing([])) == len(everything)


def test_links_that_a_package_page_cannot_follow():
    text = "[a](docs/a.md) [b](https://example.org) ![c](c.png) [d](#there)"
    assert CHECK["relative_links"](text) == ["docs/a.md", "c.png"]
