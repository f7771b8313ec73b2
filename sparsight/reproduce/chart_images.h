// Charts as SVG and PNG files, drawn without a browser by the Python package vl-convert-python.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// `wanted` (a path or a name on PATH) if given; else SPARSIGHT_PYTHON, of a program in the repository's build folder
// the .venv/ that ./dev makes there, or python3 on PATH. What lies in the current folder is never run.
std::string python_program(const std::string& wanted);

// Renders each NAME.vl.json as NAME.svg and NAME.png next to it. Returns "" or, on failure, one line that says why and
// what to do; earlier files of those names are then deleted.
std::string draw_charts(const std::vector<std::string>& names, const std::string& python);

}  // namespace sparsight
