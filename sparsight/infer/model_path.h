// Paths that a command line gives, before anything is read: of a model, and of its dataset.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// Raises Error where there is nothing at `path`, the model that a command names.
void check_model_exists(const std::string& path);

// The override of data.root, as after --set, for the folder of --data.
std::string data_root_override(const std::string& folder);

// Raises UsageError where `model` is not one and an argument after it is: they were given in the wrong order. Names
// decide, and folders by what they hold.
void check_model_is_first(const std::string& model, const std::vector<std::string>& images);

}  // namespace sparsight
