// What a folder holds, but for times, speeds, memory and process numbers: two folders with equal contents hold the same
// results, to the bit of their tensors.
#pragma once

#include <map>
#include <string>

namespace sparsight::testing {

// Relative path -> content; a file has the path "". Tensors of safetensors files: their names, shapes and bytes. JSON
// (.json, .jsonl): the values. CSV, text and pictures: the bytes. Of other files, and where bytes would show times,
// only the name.
std::map<std::string, std::string> folder_contents(const std::string& folder);

// The first difference, "" if there is none.
std::string find_difference(const std::map<std::string, std::string>& found,
                            const std::map<std::string, std::string>& expected);

}  // namespace sparsight::testing
