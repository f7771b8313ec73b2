#include "sparsight/data/register_data.h"

#include "sparsight/data/sets/glyphs.h"

namespace sparsight {

const Registry<DataSplits, DataContext>& data_sets() {
  static const auto registry = [] {
    Registry<DataSplits, DataContext> sets("data set");
    sets.add<GlyphsOptions>("glyphs", "embedded: procedurally drawn glyphs in frames, in four manners", make_glyphs);
    return sets;
  }();
  return registry;
}

}  // namespace sparsight
