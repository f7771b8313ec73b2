#include "sparsight/data/sets/cifar_names.h"

namespace sparsight {

const std::vector<std::string>& cifar10_names() {
  static const std::vector<std::string> values{"airplane", "automobile", "bird",  "cat",  "deer",
                                               "dog",      "frog",       "horse", "ship", "truck"};
  return values;
}

const std::vector<std::string>& cifar100_fine_names() {
  static const std::vector<std::string> values{
      "apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
      "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
      "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
      "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
      "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
      "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
      "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
      "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
      "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
      "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
      "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
      "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
      "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
      "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
      "woman",      "worm"};
  return values;
}

const std::vector<std::string>& cifar100_coarse_names() {
  static const std::vector<std::string> values{"aquatic mammals",
                                               "fish",
                                               "flowers",
                                               "food containers",
                                               "fruit and vegetables",
                                               "household electrical device",
                                               "household furniture",
                                               "insects",
                                               "large carnivores",
                                               "large man-made outdoor things",
                                               "large natural outdoor scenes",
                                               "large omnivores and herbivores",
                                               "medium-sized mammals",
                                               "non-insect invertebrates",
                                               "people",
                                               "reptiles",
                                               "small mammals",
                                               "trees",
                                               "vehicles 1",
                                               "vehicles 2"};
  return values;
}

const std::vector<int64_t>& cifar100_fine_to_coarse() {
  static const std::vector<int64_t> values{
      4,  1,  14, 8,  0,  6,  7,  7, 18, 3,  3,  14, 9, 18, 7,  11, 3,  9, 7,  11, 6,  11, 5,  10, 7,
      6,  13, 15, 3,  15, 0,  11, 1, 10, 12, 14, 16, 9, 11, 5,  5,  19, 8, 8,  15, 13, 14, 17, 18, 10,
      16, 4,  17, 4,  2,  0,  17, 4, 18, 17, 10, 3,  2, 12, 12, 16, 12, 1, 9,  19, 2,  10, 0,  1,  16,
      12, 9,  13, 15, 13, 16, 19, 2, 4,  6,  19, 5,  5, 8,  19, 18, 1,  2, 15, 6,  0,  17, 8,  14, 13};
  return values;
}

}  // namespace sparsight
