#include "sparsight/data/export_images.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

// A class or domain name as the name of a folder.
std::string as_file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

// Removes an unfinished folder.
struct UnfinishedFolder {
  std::string path;
  ~UnfinishedFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

void write_image(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file)
    fail("cannot write ", printable(path), ": ", std::strerror(errno), "; free some space or choose another folder");
}

}  // namespace

int64_t export_images(const DataSplits& splits, const std::string& target, const std::string& layout,
                      const std::function<void(int64_t, int64_t)>& progress) {
  SPARSIGHT_CHECK(layout == "class" || layout == "domain");
  const std::string folder = target.substr(0, target.find_last_not_of('/') + 1), unfinished = folder + ".tmp";
  std::error_code ignored;
  for (const std::string& path : {target, folder, unfinished})
    if (fs::exists(path, ignored)) fail(printable(path), " exists already; choose another folder or remove it");
  std::vector<std::pair<std::string, DataSetPtr>> parts{{"train", splits.train}};
  if (splits.validation) parts.push_back({"val", splits.validation});
  if (splits.test && splits.test != splits.validation) parts.push_back({"test", splits.test});
  int64_t total = 0, done = 0;
  for (const auto& [name, part] : parts) total += part->size();

  UnfinishedFolder aside{unfinished};
  create_folder(aside.path);
  for (const auto& [part_name, part] : parts) {
    const DataInfo& info = part->info();
    std::vector<std::string> made;
    for (int64_t i = 0; i < part->size(); ++i) {
      if (interrupted()) fail("interrupted after ", done, " of ", total, " images; nothing was kept");
      const Sample sample = part->get(i);
      const std::string class_name = as_file_name(info.classes.at(sample.label));
      const std::string subfolder = layout == "class" ? part_name + "/" + class_name
                                                      : as_file_name(info.domains.at(sample.domain)) + "/" + class_name;
      if (std::find(made.begin(), made.end(), subfolder) == made.end()) {
        create_folder(aside.path + "/" + subfolder);
        made.push_back(subfolder);
      }
      std::ostringstream name;
      name << (layout == "class" ? "" : part_name + "-") << std::setw(7) << std::setfill('0') << i << ".png";
      write_image(aside.path + "/" + subfolder + "/" + name.str(), encode_png(sample.image));
      progress(++done, total);
    }
  }
  std::error_code error;
  fs::rename(aside.path, folder, error);
  if (error) fail("cannot rename ", printable(aside.path), " to ", printable(folder), ": ", error.message());
  aside.path.clear();
  return total;
}

}  // namespace sparsight
