"""examples/python/vit_block.py learns its task."""
import os
import pathlib
import re
import subprocess
import sys

import support

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/python/vit_block.py"

out = subprocess.run([sys.executable, EXAMPLE], text=True, stdout=subprocess.PIPE, check=True,
                     env={**os.environ, "PYTHONPATH": str(support.BUILD / "python")}).stdout
print(out)
assert float(re.search(r"accuracy on new images: ([\d.]+)", out)[1]) > 0.9  # chance is 1/3
