#include "tests/support/folder_contents.h"

#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/io/atomic_file.h"

namespace sparsight::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What is measured anew in each process, and the checksums over it.
bool is_measured(const std::string& key) {
  static const std::set<std::string> keys{"seconds",     "images_per_s",   "step_seconds",       "peak_memory_mb",
                                          "step_time",   "mem_gb",         "eval_images_per_s",  "eval_mem_gb",
                                          "crc",         "checksum",       "bytes_per_image",    "peak_bytes_per_image",
                                          "environment", "tokens_per_s",   "images_per_second",  "memory_bytes",
                                          "xxh3",        "peak_memory_gb", "measured_per_image", "hours"};
  return keys.contains(key);
}

Json without_measured(const Json& value) {
  Json kept = value;
  if (value.is_object()) {
    kept = Json::object();
    for (const auto& [key, member] : value.items())
      if (!is_measured(key)) kept[key] = without_measured(member);
  } else if (value.is_array()) {
    for (Json& entry : kept) entry = without_measured(entry);
  }
  return kept;
}

std::string json_content(const std::string& text, bool lines) {
  if (!lines) return without_measured(Json::parse(text)).dump();
  std::string content;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) content += without_measured(Json::parse(line)).dump() + "\n";
  return content;
}

std::string tensor_content(const std::string& bytes) {
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  Json names = Json::parse(bytes.substr(sizeof header, header));
  names.erase("__metadata__");
  return names.dump() + bytes.substr(sizeof header + header);
}

std::string read_content(const fs::path& file) {
  const std::string name = file.filename(), ending = file.extension();
  if (name == "env.json" || name == "stages.csv" || name == "lock") return "";
  const std::string bytes = read_file(file, size_t{1} << 30);
  if (ending == ".safetensors") return tensor_content(bytes);
  if (ending == ".json" || ending == ".jsonl") return json_content(bytes, ending == ".jsonl");
  return ending == ".csv" || ending == ".txt" || ending == ".png" || ending == ".toml" ? bytes : "";
}

}  // namespace

std::map<std::string, std::string> folder_contents(const std::string& folder) {
  if (fs::is_regular_file(folder)) return {{"", read_content(folder)}};
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    contents[fs::relative(entry.path(), folder)] = entry.is_regular_file() ? read_content(entry.path()) : "folder";
  return contents;
}

std::string find_difference(const std::map<std::string, std::string>& found,
                            const std::map<std::string, std::string>& expected) {
  for (const auto& [name, content] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) return name + " is missing";
    if (other->second != content)
      return name + " differs:\n" + other->second.substr(0, 3000) + "\nexpected:\n" + content.substr(0, 3000);
  }
  for (const auto& [name, content] : found)
    if (!expected.contains(name)) return name + " is left over";
  return "";
}

}  // namespace sparsight::testing
