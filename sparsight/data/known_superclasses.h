// Divisions of classes into super-classes that are known for class names, whatever dataset has them: a folder with the
// 80 classes of MS-COCO is divided like MS-COCO.
#pragma once

#include "sparsight/data/data_set.h"

namespace sparsight {

// If `info` has no super-classes and its classes are, in any order, those of
//   CIFAR-10   vehicles (airplane, automobile, ship, truck) and animals; it has no official division
//   CIFAR-100  its 20 coarse classes
//   MS-COCO    its 12 super-categories: person, vehicle, outdoor, animal, accessory, sports, kitchen, food, furniture,
//              electronic, appliance, indoor
// sets super_classes and super_class_of. Other datasets stay as they are.
void add_known_superclasses(DataInfo& info);

// The 80 classes of MS-COCO in the order of its category numbers.
const std::vector<std::string>& coco_names();

}  // namespace sparsight
