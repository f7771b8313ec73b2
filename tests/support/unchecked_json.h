// JSON texts that a test changes, or compares with a value.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace sparsight::testing {

// The object of a text without its checksum (io/checked_json.h).
inline nlohmann::ordered_json unchecked_json(const std::string& text) {
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(text);
  object.erase("xxh3");
  return object;
}

}  // namespace sparsight::testing
