#include "sparsight/data/known_superclasses.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sparsight/data/sets/cifar_names.h"

namespace sparsight::known_superclasses_test {
namespace {

DataInfo divided(const std::vector<std::string>& classes) {
  DataInfo info;
  info.classes = classes;
  add_known_superclasses(info);
  return info;
}

using Groups = std::vector<int64_t>;

}  // namespace

// Airplane, automobile, ship and truck; the six others are animals.
TEST(KnownSuperclasses, Cifar10IsDividedIntoVehiclesAndAnimals) {
  const DataInfo info = divided(cifar10_names());
  EXPECT_EQ(info.super_class_of, (Groups{0, 0, 1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(info.super_classes, (std::vector<std::string>{"vehicles", "animals"}));
}

TEST(KnownSuperclasses, M27_Cifar100HasItsTwentyCoarseClasses) {
  const DataInfo info = divided(cifar100_fine_names());
  EXPECT_EQ(info.super_class_of, cifar100_fine_to_coarse());
  EXPECT_EQ(info.super_classes, cifar100_coarse_names());
}

// The sizes of MS-COCO's super-categories; category 1 is person, 2 bicycle, 80 toothbrush.
TEST(KnownSuperclasses, CocoHasTwelveSuperCategoriesOf80Classes) {
  ASSERT_EQ(coco_names().size(), 80u);
  EXPECT_EQ(coco_names()[0], "person");
  EXPECT_EQ(coco_names()[1], "bicycle");
  EXPECT_EQ(coco_names()[79], "toothbrush");
  const DataInfo info = divided(coco_names());
  ASSERT_EQ(info.super_classes.size(), 12u);
  const Groups sizes{1, 8, 5, 10, 5, 10, 7, 10, 6, 6, 5, 7};
  for (int64_t group = 0; group < 12; ++group)
    EXPECT_EQ(std::ranges::count(info.super_class_of, group), sizes[group]) << info.super_classes[group];
  EXPECT_TRUE(std::ranges::is_sorted(info.super_class_of));
}

TEST(KnownSuperclasses, TheOrderOfTheClassesDoesNotMatter) {
  std::vector<std::string> classes = coco_names();
  std::ranges::sort(classes);  // as in a folder of class folders
  const DataInfo info = divided(classes);
  ASSERT_EQ(info.super_class_of.size(), 80u);
  EXPECT_EQ(classes[0], "airplane");
  EXPECT_EQ(info.super_classes[info.super_class_of[0]], "vehicle");
}

TEST(KnownSuperclasses, OtherClassesAndOtherDivisionsStayAsTheyAre) {
  std::vector<std::string> classes = cifar10_names();
  classes[3] = "lion";
  EXPECT_TRUE(divided(classes).super_class_of.empty());
  classes[3] = "bird";  // twice, and no cat
  EXPECT_TRUE(divided(classes).super_class_of.empty());
  EXPECT_TRUE(divided({}).super_classes.empty());
  DataInfo own;
  own.classes = cifar10_names();
  own.super_classes = {"all"};
  own.super_class_of = Groups(10, 0);
  add_known_superclasses(own);
  EXPECT_EQ(own.super_classes, std::vector<std::string>{"all"});
}

}  // namespace sparsight::known_superclasses_test
