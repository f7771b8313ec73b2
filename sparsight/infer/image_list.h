// The image files that a command line names.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace sparsight {

// Each argument is an image file (whatever its ending; whether it can be read shows later), a folder, which stands for
// the .jpg, .jpeg and .png files in it and below it in order of name, or "-", which stands for the lines of `input`.
// Other visible files in the folders are counted in one warning. Raises Error for a folder without images or that
// cannot be listed, and where nothing is left.
std::vector<std::string> image_list(const std::vector<std::string>& arguments, std::istream& input);

}  // namespace sparsight
