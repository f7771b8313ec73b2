// What a figure reads: the real datasets, or synthetic substitutes where a run requests them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

struct FigureRun;

// A real dataset that a figure reads, and its synthetic substitute.
struct DataChoice {
  std::string set;         // in data/places.h; its folder in the data folder of a run
  std::string substitute;  // "glyphs for MNIST"
};

// What a run reads. Only `published` and `unchecked` data is shown beside the paper's numbers.
struct RunData {
  enum class Kind {
    none,       // the figure reads no dataset
    published,  // the files that their owners published
    unchecked,  // nobody published their checksums
    custom,     // other files than those that their owners published
    synthetic,
  };
  Kind kind = Kind::none;
  std::string fingerprint;          // of all files' names, sizes and contents; of the substitute's name; "" for none
  std::string text = "no dataset";  // "mnist as published, fingerprint 0123456789abcdef"
  Json files = Json::array();       // {"set", "name", "bytes", "sha256"}, at most kListedFiles for each set

  bool is_compared() const { return kind != Kind::custom && kind != Kind::synthetic; }
  bool is_synthetic() const { return kind == Kind::synthetic; }
};
inline constexpr int64_t kListedFiles = 20;

// Where the real dataset is, or would be.
std::string real_folder(const DataChoice& choice, const FigureRun& run);

// "glyphs for MNIST" of a run on substitutes, "" of one on real data.
std::string substitute_for(const std::vector<DataChoice>& choices, const FigureRun& run);

// Reads all files, unless run.fingerprint says what they are (kind is then `unchecked`). Raises Error where one is
// missing: what was looked for, where it goes, and how to do without.
RunData read_data(const std::vector<DataChoice>& choices, const FigureRun& run);

}  // namespace sparsight
