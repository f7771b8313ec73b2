#include "sparsight/reproduce/data_choice.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/fingerprint.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight {
namespace {

using Kind = RunData::Kind;

constexpr const char* kInstead = "; --synthetic uses a synthetic substitute instead";

DataFingerprint fingerprint_in(const DataChoice& choice, const FigureRun& run) {
  try {
    return data_fingerprint(find_data_place(choice.set), real_folder(choice, run));
  } catch (const Error& error) {
    fail(error.what(), kInstead);
  }
}

std::string kind_text(Kind kind) {
  if (kind == Kind::published) return " as published";
  return kind == Kind::custom ? ": custom data, not the published files" : ": no published checksums are known";
}

}  // namespace

std::string real_folder(const DataChoice& choice, const FigureRun& run) {
  return place_folder(find_data_place(choice.set), run.data);
}

std::string substitute_for(const std::vector<DataChoice>& choices, const FigureRun& run) {
  if (!run.data.empty()) return "";
  std::vector<std::string> names;
  for (const DataChoice& choice : choices) names.push_back(choice.substitute);
  return join(names);
}

RunData read_data(const std::vector<DataChoice>& choices, const FigureRun& run) {
  RunData data;
  if (choices.empty()) return data;
  if (run.data.empty()) {
    data.kind = Kind::synthetic;
    data.text = substitute_for(choices, run);
    data.fingerprint = fingerprint_texts({data.text});
    return data;
  }
  data.kind = run.fingerprint.empty() ? Kind::published : Kind::unchecked;
  data.fingerprint = run.fingerprint;
  if (!run.fingerprint.empty()) return data;
  std::vector<std::string> prints, texts;
  for (const DataChoice& choice : choices) {
    const DataFingerprint found = fingerprint_in(choice, run);
    const Kind kind = !found.published ? Kind::unchecked : *found.published ? Kind::published : Kind::custom;
    if (kind == Kind::custom || data.kind == Kind::published) data.kind = kind;
    prints.push_back(found.hex);
    texts.push_back(cat(choice.set, kind_text(kind), ", fingerprint ", found.hex));
    for (const FileContent& file : found.files)
      if (&file - found.files.data() < kListedFiles)
        data.files.push_back(
            {{"set", choice.set}, {"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  data.fingerprint = prints.size() == 1 ? prints[0] : fingerprint_texts(prints);
  data.text = join(texts, "; ");
  return data;
}

}  // namespace sparsight
