"""What tools/memcheck.py counts of valgrind's report: errors and leaks with a frame of ours."""

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "tools" / "memcheck.py"
if not SOURCE.exists():
    pytest.skip("there are no tools beside these tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("memcheck", SOURCE)
memcheck = importlib.util.module_from_spec(spec)
spec.loader.exec_module(memcheck)

ERROR = "<error><kind>{}</kind><what>bad</what><stack>{}</stack></error>"
FRAME = "<frame><obj>{}</obj><fn>f</fn></frame>"


def test_only_our_frames_count(tmp_path):
    ours, other = (FRAME.format(f"/x/{name}.so") for name in ("_kernels.abi3", "libpython"))
    errors = [("InvalidRead", ours + other), ("UninitValue", other), ("Leak", other + ours)]
    report = tmp_path / "report.xml"
    report.write_text(f"<valgrind>{''.join(ERROR.format(*own) for own in errors)}</valgrind>")
    found, others = memcheck.found_in(str(report))
    assert [line.split(":")[0] for line in found] == ["InvalidRead", "Leak"]
    assert others == 1
