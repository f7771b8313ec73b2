"""The check of function lengths: what it recognises as a function, and where it finds the function's end."""
import pathlib
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_function_length.py"
STEPS = "  step();\n"
SHORT_AND_LONG = f"""\
#include <vector>

namespace example {{

const std::vector<int> kTable = {{
{"    1,  // of many" + chr(10)}{"    2," + chr(10) * 2}{"    3," + chr(10) * 70}}};

struct Options {{
  int first = min(1, 2);
{"  int more;" + chr(10) * 70}}};

int short_one() {{
{STEPS * 58}}}

int long_one(int first,
             int second) {{
{STEPS * 58}}}

class Model : public Base {{
 public:
  Model(int a)
      : a_(a) {{
{"  " + STEPS * 60}  }}
  void forward() const {{
    const auto each = [&] {{
{"    " + STEPS * 59}    }};
  }}
}};

template <class T>
bool operator==(const T& a, const T& b) {{
  const char* const text = R"(
}}
)";
{STEPS * 60}}}

TEST_F(Layers, Stack) {{  // a comment
{STEPS * 60}}}

}}  // namespace example
"""


def check(*files):
    return subprocess.run([sys.executable, TOOL, *files], text=True, capture_output=True)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "example.cpp"
        file.write_text(SHORT_AND_LONG)
        result = check(file)
        assert result.returncode == 1 and not result.stderr, result
        lines = SHORT_AND_LONG.split("\n")
        expected = [("int long_one(int first,", "long_one", 61), ("  Model(int a)", "Model", 63), ("  void forward() const {", "forward", 63),
                    ("template <class T>", "operator==", 66), ("TEST_F(Layers, Stack) {  // a comment", "TEST_F(Layers, Stack)", 62)]
        assert result.stdout == "".join(f"{file}:{lines.index(first) + 1}: {name} is {length} lines long, at most 60\n"
                                        for first, name, length in expected), result.stdout
        file.write_text(f"int short_one() {{\n{STEPS * 58}}}\n")
        assert check(file).returncode == 0


main()
