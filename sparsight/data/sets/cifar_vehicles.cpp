#include "sparsight/data/sets/cifar_vehicles.h"

#include <algorithm>
#include <array>

#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/data/sets/class_pictures.h"

namespace sparsight {
namespace {

constexpr std::array<int64_t, 4> kVehicles{0, 1, 8, 9};       // airplane, automobile, ship, truck
constexpr std::array<int64_t, 6> kAnimals{2, 3, 4, 5, 6, 7};  // bird, cat, deer, dog, frog, horse
constexpr int64_t kCell = 16;

class CifarVehiclesSet final : public DataSet {
 public:
  CifarVehiclesSet(DataInfo info, ClassPictures pictures, std::string part, int64_t seed, int64_t size)
      : info_(std::move(info)), pictures_(std::move(pictures)), part_(std::move(part)), seed_(seed), size_(size) {
    for (const int64_t animal : kAnimals) animals_ += pictures_.count(animal);
  }

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % std::ssize(kVehicles); }

  Sample get(int64_t index) const override {
    RandomStream random(static_cast<uint64_t>(seed_), "cifar_vehicles." + part_, static_cast<uint64_t>(index));
    const int64_t quadrant = random.below(4);
    Sample sample;
    sample.label = label(index);
    sample.id = cat(part_, "/", index);
    sample.attributes = {static_cast<float>(quadrant)};
    sample.image = at::empty({3, 2 * kCell, 2 * kCell}, at::kByte);
    for (int64_t cell = 0; cell < 4; ++cell) {
      const Sample picture =
          cell == quadrant ? pictures_.get(kVehicles[static_cast<size_t>(sample.label)], index / std::ssize(kVehicles))
                           : animal(random.below(animals_));
      sample.image.narrow(1, cell / 2 * kCell, kCell).narrow(2, cell % 2 * kCell, kCell).copy_(halved(picture.image));
    }
    return sample;
  }

 private:
  // The animal with this number, counted class by class.
  Sample animal(int64_t number) const {
    size_t i = 0;
    while (number >= pictures_.count(kAnimals[i])) number -= pictures_.count(kAnimals[i++]);
    return pictures_.get(kAnimals[i], number);
  }

  DataInfo info_;
  ClassPictures pictures_;
  std::string part_;
  int64_t seed_, size_, animals_ = 0;
};

}  // namespace

void CifarVehiclesOptions::declare(OptionSet& set) {
  set.choice("source", &source, {"cifar10", "glyphs"},
             "CIFAR-10, or generated images of ten classes, which need no files");
  set.text("root", &root, "folder of CIFAR-10's .bin files; empty: cifar10 below SPARSIGHT_DATA or data/");
  set.integer("train", &train, {0, 1000000},
              "training images; a larger number adds images after the same first ones; 0 for all");
  set.integer("test", &test, {0, 1000000}, "test images; 0 for all");
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of quadrants and animals; run.seed does not change them");
}

DataSplits make_cifar_vehicles(const CifarVehiclesOptions& options, const DataContext&) {
  const PictureParts pictures = picture_parts(options.source, options.root, options.seed);
  DataInfo info;
  info.name = options.source == "glyphs" ? "cifar_vehicles (glyphs as a synthetic substitute)" : "cifar_vehicles";
  for (const int64_t label : kVehicles)
    info.classes.push_back(pictures.train.info().classes.at(static_cast<size_t>(label)));
  info.domains = {info.name};
  info.attributes = {"cell"};
  info.height = info.width = 2 * kCell;
  const auto make_part = [&](const ClassPictures& of, const std::string& part, int64_t requested) {
    int64_t minimum = of.count(kVehicles[0]), animals = 0;
    for (const int64_t label : kVehicles) minimum = std::min(minimum, of.count(label));
    for (const int64_t label : kAnimals) animals += of.count(label);
    if (animals == 0) fail("the ", part, " split has no animals to fill quadrants with");
    return std::make_shared<CifarVehiclesSet>(info, of, part, options.seed,
                                              checked_count(requested, minimum, std::ssize(kVehicles), part));
  };
  DataSplits parts;
  parts.train = make_part(pictures.train, "train", options.train);
  parts.test = make_part(pictures.test, "test", options.test);
  parts.validation = parts.test;
  parts.missing = "validation";
  return parts;
}

}  // namespace sparsight
