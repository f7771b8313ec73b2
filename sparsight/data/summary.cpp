#include "sparsight/data/summary.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/readers/cifar.h"
#include "sparsight/data/readers/idx.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/data/readers/npy.h"

namespace sparsight {
namespace {

constexpr int64_t kLookedAt = 500;
constexpr int64_t kMaxRows = 200;  // of the class table

PartSummary summarise_part(const std::string& name, const DataSet& set) {
  PartSummary part;
  part.name = name;
  part.images = set.size();
  part.per_class.resize(set.info().classes.size());
  part.per_domain.resize(set.info().domains.size());
  for (int64_t i = 0; i < set.size(); ++i) {
    if (interrupted()) fail("interrupted");
    for (const int64_t label : set.labels(i)) ++part.per_class.at(static_cast<size_t>(label));
    ++part.per_domain.at(set.domain(i));
  }
  part.looked_at = std::min(kLookedAt, set.size());
  for (int64_t i = 0; i < part.looked_at; ++i) {
    if (interrupted()) fail("interrupted");
    const at::Tensor image = set.get(i * set.size() / part.looked_at).image;
    const int64_t height = image.size(1), width = image.size(2);
    part.min_height = i == 0 ? height : std::min(part.min_height, height);
    part.min_width = i == 0 ? width : std::min(part.min_width, width);
    part.max_height = std::max(part.max_height, height);
    part.max_width = std::max(part.max_width, width);
  }
  return part;
}

std::string range(int64_t low, int64_t high) { return low == high ? cat(low) : cat(low, "-", high); }

// Pads to a width in terminal columns: continuation bytes of UTF-8 take no column.
size_t shown_width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, shown_width(text)), ' ');
}

// Rows of names with a count for each split.
void add_counts(std::ostringstream& text, const std::string& title, const std::vector<std::string>& names,
                const std::vector<PartSummary>& parts, std::vector<int64_t> PartSummary::*counts) {
  size_t width = title.size();
  const size_t rows = std::min<size_t>(names.size(), kMaxRows);
  for (size_t i = 0; i < rows; ++i) width = std::max(width, shown_width(names[i]));
  text << "\n" << padded(title, width);
  for (const PartSummary& part : parts) text << "  " << std::setw(10) << part.name;
  text << "\n";
  for (size_t i = 0; i < rows; ++i) {
    text << padded(names[i], width);
    for (const PartSummary& part : parts) text << "  " << std::setw(10) << (part.*counts)[i];
    text << "\n";
  }
  if (rows < names.size()) text << "... and " << names.size() - rows << " more\n";
}

std::string kind_of_file(const std::string& path, const Bytes& bytes) {
  const auto ends = [&](const char* ending) { return path.ends_with(ending); };
  if (has_image_ending(path)) return "image";
  if (ends(".npy")) return "npy";
  if (ends(".bin")) return "cifar";
  if (ends("ubyte") || ends(".gz") || is_gzip(bytes)) return "idx";
  if (bytes.size() > 3 && bytes[0] == 0 && bytes[1] == 0) return "idx";
  if (bytes.size() > 1 && bytes[0] == 0x93) return "npy";
  return "image";
}

}  // namespace

DataSummary summarise(const DataSplits& splits) {
  DataSummary summary{splits.train->info(), {}};
  summary.parts.push_back(summarise_part("train", *splits.train));
  const bool same = splits.test == splits.validation;
  if (splits.validation) summary.parts.push_back(summarise_part("validation", *splits.validation));
  if (splits.test && !same) summary.parts.push_back(summarise_part("test", *splits.test));
  return summary;
}

std::string summary_text(const DataSummary& summary) {
  const DataInfo& info = summary.info;
  std::ostringstream text;
  text << info.name << ": " << info.classes.size() << " classes";
  if (!info.super_classes.empty()) text << " in " << info.super_classes.size() << " super-classes";
  if (info.domains.size() > 1) text << ", " << info.domains.size() << " domains";
  if (info.multi_label) text << ", several labels per image";
  text << ", " << (info.channels == 1 ? "grey" : "RGB") << "\n";
  if (!info.attributes.empty()) text << "attributes: " << join(info.attributes) << "\n";
  for (const PartSummary& part : summary.parts) {
    text << padded(part.name, 10) << "  " << part.images << " images";
    if (part.looked_at > 0)
      text << ", " << range(part.min_width, part.max_width) << " x " << range(part.min_height, part.max_height)
           << " pixels"
           << (part.looked_at < part.images && info.height == 0 ? cat(" (of ", part.looked_at, " looked at)") : "");
    text << "\n";
  }
  if (info.domains.size() > 1) add_counts(text, "domain", info.domains, summary.parts, &PartSummary::per_domain);
  add_counts(text, "class", info.classes, summary.parts, &PartSummary::per_class);
  return text.str();
}

std::string describe_file(const std::string& path) {
  Bytes bytes = read_bytes(path);
  const std::string name = printable(path), kind = kind_of_file(path, bytes);
  if (kind == "image") {
    const at::Tensor image = decode_image(bytes, name);
    return cat(name, ": an image of ", image.size(2), " x ", image.size(1), " pixels, ",
               image.size(0) == 1 ? "grey" : "RGB");
  }
  if (kind == "cifar") {
    // 3073 x 3074 bytes would fit both; no file of the archives has them.
    const size_t label_bytes = bytes.size() % 3073 == 0 ? 1 : 2;
    return cat(name, ": ", parse_cifar(bytes, label_bytes, name).images.size(0), " CIFAR records with ", label_bytes,
               label_bytes == 1 ? " label" : " labels");
  }
  const at::Tensor values = kind == "npy" ? parse_npy(std::move(bytes), name) : parse_idx(std::move(bytes), name);
  return cat(name, ": ", kind, ", ", values.scalar_type(), " ", values.sizes());
}

}  // namespace sparsight
