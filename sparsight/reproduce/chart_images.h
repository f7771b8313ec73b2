// Charts as SVG and PNG files, drawn without a browser by the Python package vl-convert-python.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// `wanted` (a path or a name on the PATH) if given; else SPARSIGHT_PYTHON, the .venv/ that ./dev makes in the current
// folder, or python3.
std::string python_program(const std::string& wanted);

// Draws each of the files NAME.vl.json as NAME.svg and NAME.png beside it. Returns "" or, where they cannot be drawn,
// one line that says why and what to do; files of that name from earlier are gone then.
std::string draw_charts(const std::vector<std::string>& names, const std::string& python);

}  // namespace sparsight
