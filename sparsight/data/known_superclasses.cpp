#include "sparsight/data/known_superclasses.h"

#include <map>

#include "sparsight/data/sets/cifar_names.h"

namespace sparsight {
namespace {

struct SuperClass {
  std::string name;
  std::vector<std::string> classes;
};

using Division = std::vector<SuperClass>;

// Super-classes are numbered by their first class.
const Division& cifar10_division() {
  static const Division division{{"vehicles", {"airplane", "automobile", "ship", "truck"}},
                                 {"animals", {"bird", "cat", "deer", "dog", "frog", "horse"}}};
  return division;
}

Division cifar100_division() {
  Division division;
  for (const std::string& name : cifar100_coarse_names()) division.push_back({name, {}});
  for (size_t k = 0; k < cifar100_fine_names().size(); ++k)
    division[cifar100_fine_to_coarse()[k]].classes.push_back(cifar100_fine_names()[k]);
  return division;
}

// Lin et al. 2014, "Microsoft COCO: Common Objects in Context"; the categories of its annotations, in their order.
const Division& coco_division() {
  static const Division division{
      {"person", {"person"}},
      {"vehicle", {"bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat"}},
      {"outdoor", {"traffic light", "fire hydrant", "stop sign", "parking meter", "bench"}},
      {"animal", {"bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"}},
      {"accessory", {"backpack", "umbrella", "handbag", "tie", "suitcase"}},
      {"sports",
       {"frisbee", "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard",
        "surfboard", "tennis racket"}},
      {"kitchen", {"bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl"}},
      {"food", {"banana", "apple", "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake"}},
      {"furniture", {"chair", "couch", "potted plant", "bed", "dining table", "toilet"}},
      {"electronic", {"tv", "laptop", "mouse", "remote", "keyboard", "cell phone"}},
      {"appliance", {"microwave", "oven", "toaster", "sink", "refrigerator"}},
      {"indoor", {"book", "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush"}}};
  return division;
}

// Whether the division is one of exactly the classes of `info`, which it then divides.
bool divide(DataInfo& info, const Division& division) {
  std::map<std::string, int64_t> of_name;
  for (size_t group = 0; group < division.size(); ++group)
    for (const std::string& name : division[group].classes) of_name[name] = static_cast<int64_t>(group);
  if (of_name.size() != info.classes.size()) return false;
  std::vector<int64_t> of_class;
  for (const std::string& name : info.classes) {
    const auto found = of_name.find(name);
    if (found == of_name.end()) return false;
    of_class.push_back(found->second);
    of_name.erase(found);  // a name that comes twice is not the known dataset
  }
  info.super_class_of = std::move(of_class);
  for (const SuperClass& group : division) info.super_classes.push_back(group.name);
  return true;
}

}  // namespace

void add_known_superclasses(DataInfo& info) {
  if (!info.super_class_of.empty() || !info.super_classes.empty()) return;
  if (divide(info, cifar10_division()) || divide(info, coco_division())) return;
  divide(info, cifar100_division());
}

const std::vector<std::string>& coco_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const SuperClass& group : coco_division()) all.insert(all.end(), group.classes.begin(), group.classes.end());
    return all;
  }();
  return names;
}

}  // namespace sparsight
