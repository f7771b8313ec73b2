#include "sparsight/data/places.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/domainbed/published_domains.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/data/remote_sets.h"
#include "sparsight/data/sets/mnist.h"

namespace sparsight {
namespace {

using PlacedFiles = std::vector<PlacedFile>;

constexpr const char* kFaces = "img_align_celeba";

[[noreturn]] void fail_missing(const DataPlace& place, const std::string& folder, const std::string& file) {
  fail(place.name, " is not complete: there is no ", file, " in ", printable(folder), "; ", place.get,
       " (`sparsight data where ", place.name, "` shows what goes where)");
}

// `name` in the folder, or in the sub-folder `inner`; "" where it is in neither.
std::string path_in(const std::string& folder, const std::string& inner, const std::string& name) {
  for (const std::string& path : {folder + "/" + name, folder + "/" + inner + "/" + name})
    if (path_exists(path)) return path;
  return "";
}

PlacedFiles binary_files(const DataPlace& place, const std::string& folder, const std::string& inner,
                         const std::vector<std::string>& names) {
  PlacedFiles files;
  for (const std::string& name : names) {
    files.push_back({name, path_in(folder, inner, name)});
    if (files.back().path.empty()) fail_missing(place, folder, name);
  }
  return files;
}

PlacedFiles idx_files(const DataPlace& place, const std::string& folder) {
  PlacedFiles files;
  for (const char* part : {"t10k", "train"})
    for (const char* kind : {"images-idx3", "labels-idx1"}) {
      const std::string name = cat(part, "-", kind, "-ubyte");
      files.push_back({name, find_idx(folder, part, kind)});
      if (files.back().path.empty()) fail_missing(place, folder, cat(name, " or ", name, ".gz"));
    }
  return files;
}

// As its reader does, it makes do with fewer training batches; the fingerprint then says that these are not all.
PlacedFiles cifar10_files(const DataPlace& place, const std::string& folder) {
  const std::string inner = "cifar-10-batches-bin";
  std::vector<std::string> names{"data_batch_1.bin"};
  for (int i = 2; i <= 5; ++i)
    if (const std::string name = cat("data_batch_", i, ".bin"); !path_in(folder, inner, name).empty())
      names.push_back(name);
  names.emplace_back("test_batch.bin");
  return binary_files(place, folder, inner, names);
}

PlacedFiles cifar100_files(const DataPlace& place, const std::string& folder) {
  return binary_files(place, folder, "cifar-100-binary", {"test.bin", "train.bin"});
}

PlacedFiles images_in(const DataPlace& place, const std::string& folder, const std::string& inner) {
  IgnoredFiles ignored;
  std::error_code error;
  const std::string where = inner.empty() ? folder : folder + "/" + inner;
  PlacedFiles files;
  if (path_exists(where))
    for (const std::string& path : images_below(where, ignored, error))
      files.push_back({path.substr(folder.size() + 1), path});
  if (error) fail(printable(where), " cannot be read: ", error.message());
  if (files.empty()) fail_missing(place, folder, inner.empty() ? "image" : inner + "/ with images");
  return files;
}

PlacedFiles face_files(const DataPlace& place, const std::string& folder) {
  PlacedFiles files = images_in(place, folder, kFaces);
  const PlacedFiles lists = binary_files(place, folder, "", {"list_attr_celeba.txt", "list_eval_partition.txt"});
  files.insert(files.end(), lists.begin(), lists.end());
  return files;
}

const PublishedDomains& pacs() { return *std::ranges::find(published_domains(), "pacs", &PublishedDomains::name); }

PlacedFiles pacs_files(const DataPlace& place, const std::string& folder) {
  PlacedFiles files;
  for (const std::string& domain : pacs().domains) {
    const PlacedFiles of_domain = images_in(place, folder, domain);
    files.insert(files.end(), of_domain.begin(), of_domain.end());
  }
  return files;
}

std::string pacs_difference(const PlacedFiles& files) {
  constexpr int64_t kSide = 227;
  std::vector<std::string> differences;
  for (size_t d = 0; d < pacs().domains.size(); ++d) {
    const std::string& domain = pacs().domains[d];
    const auto images =
        std::ranges::count_if(files, [&](const PlacedFile& file) { return file.name.starts_with(domain + "/"); });
    if (images != pacs().images[d])
      differences.push_back(cat(domain, " has ", images, " images, not ", pacs().images[d]));
  }
  const at::Tensor image = read_image(files.front().path);
  if (image.size(1) != kSide || image.size(2) != kSide)
    differences.push_back(
        cat("images have ", image.size(2), " x ", image.size(1), " pixels, not ", kSide, " x ", kSide));
  return join(differences);
}

PlacedFiles plant_files(const DataPlace& place, const std::string& folder) { return images_in(place, folder, ""); }

// A set of `data fetch`.
template <class FindFiles>
DataPlace fetched(const std::string& name, const std::string& files, FindFiles find_files) {
  return {name, find_remote_set(name).title, files, cat("run `sparsight data fetch ", name, "`"), find_files};
}

}  // namespace

const std::vector<DataPlace>& data_places() {
  static const std::string kIdx =
      "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
      "t10k-labels-idx1-ubyte, plain or .gz, here or in raw/";
  static const std::vector<DataPlace> places = {
      fetched("mnist", kIdx, idx_files),
      fetched("fashion-mnist", kIdx, idx_files),
      fetched("kmnist", kIdx, idx_files),
      fetched("cifar10", "data_batch_1.bin to data_batch_5.bin and test_batch.bin, here or in cifar-10-batches-bin/",
              cifar10_files),
      fetched("cifar100", "train.bin and test.bin, here or in cifar-100-binary/", cifar100_files),
      {"celeba", "CelebA, 202,599 aligned faces with 40 attributes",
       cat(kFaces, "/ with the aligned images, list_attr_celeba.txt and list_eval_partition.txt"),
       "copy its official files there", face_files},
      {"plants", "photographs of plants, the backgrounds of CIFAR-10 with noise", "image files, at any depth",
       "copy your photographs there", plant_files},
      {"pacs",
       "PACS, 9,991 pictures of 7 classes in four domains",
       "art_painting/, cartoon/, photo/ and sketch/, each with class/image",
       "obtain it from " + pacs().obtain,
       pacs_files,
       {pacs().folder, "pacs112"},
       pacs_difference}};
  return places;
}

const DataPlace& find_data_place(const std::string& name) { return entry_named(name, data_places(), "dataset"); }

std::string place_folder(const DataPlace& place, const std::string& home) {
  for (const std::string& name : place.folders)
    if (path_exists(home + "/" + name)) return home + "/" + name;
  return home + "/" + (place.folders.empty() ? place.name : place.folders.front());
}

std::vector<PlacedFile> placed_files(const DataPlace& place, const std::string& folder) {
  PlacedFiles files = place.find_files(place, folder);
  std::sort(files.begin(), files.end(), [](const PlacedFile& a, const PlacedFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace sparsight
