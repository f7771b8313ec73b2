#include "sparsight/catalogue/superclass_options.h"

namespace sparsight {

void SuperclassOptions::declare(OptionSet& set) {
  set.choice("source", &source, {"data", "file", "random"},
             "where the division of the classes comes from: the dataset's own, a file, or chance (the baseline of "
             "Mobile V-MoE)");
  set.text("file", &file,
           "source = \"file\": a text file with one integer per line; line i is the super-class of class i");
  set.choice("sizes", &sizes, {"equal", "matched"},
             "source = \"random\": as many super-classes as experts, of sizes equal up to one; or as many and as large "
             "as those of the dataset");
  set.integer("seed", &seed, {0, INT64_MAX}, "source = \"random\": seed of the division");
}

}  // namespace sparsight
