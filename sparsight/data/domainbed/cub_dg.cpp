#include "sparsight/data/domainbed/cub_dg.h"

#include <charconv>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/csv.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/atomic_folder.h"

namespace sparsight {
namespace {

constexpr const char* kKeypointFile = "keypoints.csv";
constexpr int64_t kMaxParts = 256;
constexpr const char* kKeypointHeader = "domain,image,part,x,y";

// In the order of the environments.
std::vector<std::pair<std::string, std::string>> domain_folders(const CubDgFolders& folders) {
  return {{"Candy", folders.candy},
          {"Mosaic", folders.mosaic},
          {"Natural", folders.cub + "/images"},
          {"Udnie", folders.udnie}};
}

// Raises Error unless `folder` has exactly these class/file.
void check_same_pictures(const std::string& folder, const std::set<std::string>& expected) {
  IgnoredFiles others;
  std::error_code error;
  const std::vector<std::string> paths = images_below(folder, others, error);
  if (error) fail("cannot list the pictures of ", printable(folder), ": ", error.message());
  std::set<std::string> there;
  for (const std::string& path : paths) there.insert(path.substr(folder.size() + 1));
  for (const std::string& name : expected)
    if (!there.contains(name))
      fail(printable(folder), " has no ", printable(name), ", which CUB-200-2011 lists (", there.size(), " of ",
           expected.size(), " pictures are there); save each copy under the class and name of its picture");
  for (const std::string& name : there)
    if (!expected.contains(name))
      fail(printable(folder), " has ", printable(name), ", which CUB-200-2011 does not list; remove it");
}

void link_or_copy(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::create_hard_link(from, to, error);
  if (!error) return;
  std::filesystem::copy_file(from, to, error);  // another disk, or one without hard links
  if (error) fail("cannot copy ", printable(from), " to ", printable(to), ": ", error.message());
}

struct PictureSize {
  int64_t height = 0, width = 0;
};

PictureSize size_of_picture(const std::string& path) {
  const at::Tensor image = read_image(path);
  return {image.size(1), image.size(2)};
}

std::string keypoint_lines(const CubTable& cub, size_t image, const std::string& domain, const PictureSize& original,
                           const PictureSize& size) {
  std::string lines;
  for (size_t part = 0; part < cub.parts.size(); ++part) {
    const Keypoint& point = cub.keypoint(image, part);
    if (!point.visible) continue;
    const Keypoint at = rescaled(point, original.height, original.width, size.height, size.width);
    lines += cat(domain, ",\"", cub.images[image], "\",", cub.parts[part], ",", at.x, ",", at.y, "\n");
  }
  return lines;
}

double coordinate(const CsvRow& row, size_t field, const std::string& path) {
  const std::string& word = row.fields[field];
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    fail(path, ":", row.line, ": \"", printable(word), "\" is not a number");
  if (!(value >= 0 && value <= 1e6)) fail(path, ":", row.line, ": ", printable(word), " is no pixel of an image");
  return value;
}

}  // namespace

Keypoint rescaled(const Keypoint& point, int64_t height, int64_t width, int64_t new_height, int64_t new_width) {
  return {point.x * static_cast<double>(new_width) / static_cast<double>(width),
          point.y * static_cast<double>(new_height) / static_cast<double>(height), point.visible};
}

int64_t build_cub_dg(const CubDgFolders& folders, const std::string& target,
                     const std::function<void(int64_t, int64_t)>& progress) {
  const CubTable cub = read_cub(folders.cub);
  const std::set<std::string> pictures(cub.images.begin(), cub.images.end());
  const auto domains = domain_folders(folders);
  for (const auto& [domain, folder] : domains) check_same_pictures(folder, pictures);
  AtomicFolder made(target);
  const auto total = static_cast<int64_t>(domains.size() * cub.images.size());
  int64_t done = 0;
  std::string keypoints = std::string(kKeypointHeader) + "\n";
  for (const auto& [domain, folder] : domains)
    for (const std::string& name : cub.classes) create_folder(made.aside() + "/" + domain + "/" + name);
  for (size_t i = 0; i < cub.images.size(); ++i) {
    const PictureSize original = size_of_picture(folders.cub + "/images/" + cub.images[i]);
    for (const auto& [domain, folder] : domains) {
      const std::string source = folder + "/" + cub.images[i];
      link_or_copy(source, made.aside() + "/" + domain + "/" + cub.images[i]);
      const PictureSize size = domain == "Natural" ? original : size_of_picture(source);
      keypoints += keypoint_lines(cub, i, domain, original, size);
      if (progress) progress(++done, total);
    }
  }
  write_file_atomically(made.aside() + "/" + kKeypointFile, keypoints);
  made.commit();
  return total;
}

bool has_cub_dg_keypoints(const std::string& root) { return path_exists(root + "/" + kKeypointFile); }

CubDgKeypoints read_cub_dg_keypoints(const std::string& root) {
  const std::string path = root + "/" + kKeypointFile;
  const Bytes bytes = read_bytes(path, kMaxManifestBytes);
  const std::string name = printable(path);
  const std::vector<CsvRow> rows = parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  CubDgKeypoints result;
  std::set<std::string> parts;
  for (size_t i = 0; i < rows.size(); ++i) {
    const CsvRow& row = rows[i];
    const std::vector<std::string>& fields = row.fields;
    if (fields.size() != 5 || (i == 0 && join(fields, ",") != kKeypointHeader))
      fail(name, ":", row.line, ": expected the columns ", kKeypointHeader);
    if (i == 0) continue;
    const Keypoint point{coordinate(row, 3, name), coordinate(row, 4, name), true};
    const std::string id = printable(fields[0] + "/" + fields[1]), part = printable(fields[2]);
    if (!result[id].try_emplace(part, point).second)
      fail(name, ":", row.line, ": the ", part, " of ", id, " is there twice");
    parts.insert(part);
    if (std::ssize(parts) > kMaxParts) fail(name, ":", row.line, ": more than ", kMaxParts, " parts");
  }
  return result;
}

}  // namespace sparsight
