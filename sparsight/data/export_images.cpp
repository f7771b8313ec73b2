#include "sparsight/data/export_images.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <optional>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/data/class_folders.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_folder.h"

namespace sparsight {
namespace {

void write_image(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file)
    fail("cannot write ", printable(path), ": ", std::strerror(errno), "; free some space or choose another folder");
}

}  // namespace

int64_t export_images(const DataSplits& splits, const std::string& folder, const std::string& layout,
                      const std::function<void(int64_t, int64_t)>& progress) {
  SPARSIGHT_CHECK(layout == "class" || layout == "domain");
  need_single_labels(splits.train->info(), "a folder for each class");
  if (const int64_t channels = splits.train->info().channels; channels != 1 && channels != 3)
    fail_usage(printable(splits.train->info().name), " has images of ", channels,
               " channels; PNG files have 1 (grey) or 3 (RGB)");
  std::vector<std::pair<std::string, DataSetPtr>> parts{{"train", splits.train}};
  if (splits.validation) parts.push_back({"val", splits.validation});
  if (splits.test && splits.test != splits.validation) parts.push_back({"test", splits.test});
  int64_t total = 0, done = 0;
  for (const auto& [name, part] : parts) total += part->size();

  AtomicFolder made(folder);
  const bool by_domain = layout == "domain";
  std::optional<ClassFolders> places;  // by domain, the parts share the folders
  for (const auto& [part_name, part] : parts) {
    const std::string root = made.aside() + (by_domain ? "" : "/" + part_name);
    create_folder(root);
    if (!by_domain || !places) places.emplace(root, part->info(), by_domain);
    for (int64_t i = 0; i < part->size(); ++i) {
      if (interrupted()) fail("interrupted after ", done, " of ", total, " images; nothing was kept");
      const Sample sample = part->get(i);
      std::ostringstream name;
      name << (by_domain ? part_name + "-" : "") << std::setw(7) << std::setfill('0') << i << ".png";
      write_image(places->of(sample.domain, sample.label) + "/" + name.str(), encode_png(sample.image));
      progress(++done, total);
    }
  }
  made.commit();
  return total;
}

}  // namespace sparsight
