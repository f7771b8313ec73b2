#include "sparsight/report/run/superclass_folder.h"

#include <filesystem>

#include "sparsight/analysis/superclasses/confusion_picture.h"
#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/data/readers/npy_write.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/charts/confusion_graph.h"
#include "sparsight/report/run/superclass_report.h"

namespace sparsight {

std::string superclass_folder(const std::string& run) { return run + "/superclasses"; }
std::string superclass_map_file(const std::string& folder) { return folder + "/map.txt"; }

void remove_superclasses(const std::string& run) {
  const std::string folder = superclass_folder(run);
  std::error_code ignored;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(folder, ignored))) return;
  for (const char* name : {"map.txt", "superclasses.json", "report.txt", "graph.svg", "confusion.png", "confusion.npy"})
    std::filesystem::remove(folder + "/" + name, ignored);
}

void write_superclasses(const std::string& folder, const FoundSuperclasses& found) {
  const std::string picture =
      encode_png(confusion_picture(found.counts, found.clusters.class_to_superclass, found.classes));
  create_folder(folder);
  std::error_code ignored;  // what cannot be removed cannot be replaced either, and that is an error below
  std::filesystem::remove(superclass_map_file(folder), ignored);
  write_file_atomically(folder + "/confusion.npy", encode_npy(found.counts));
  write_file_atomically(folder + "/confusion.png", picture);
  write_file_atomically(folder + "/graph.svg", confusion_graph_svg(found));
  write_file_atomically(folder + "/report.txt", superclass_report(found));
  write_file_atomically(folder + "/superclasses.json", json_text(superclass_json(found), 2) + "\n");
  write_superclass_map(superclass_map_file(folder), found.clusters.class_to_superclass);
}

}  // namespace sparsight
