// The image files that a command line names.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace sparsight {

// Each argument is an image file (with any extension; errors appear when it is read), a folder, which means the .jpg,
// .jpeg and .png files in it and its subfolders in order of name, or "-", which means the lines of `input`. Raises
// Error for a folder without images or that cannot be listed, and if there are no files at all.
std::vector<std::string> image_list(const std::vector<std::string>& arguments, std::istream& input);

}  // namespace sparsight
