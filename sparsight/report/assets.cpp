#include "sparsight/report/assets.h"

#define SPARSIGHT_ASSET(name)                                                             \
  extern "C" const char sparsight_asset_##name##_begin[], sparsight_asset_##name##_end[]; \
  std::string_view sparsight::assets::name() { return {sparsight_asset_##name##_begin, sparsight_asset_##name##_end}; }

SPARSIGHT_ASSET(vega)
SPARSIGHT_ASSET(vega_lite)
SPARSIGHT_ASSET(vega_embed)
SPARSIGHT_ASSET(page_style)
SPARSIGHT_ASSET(page_watch)
SPARSIGHT_ASSET(page_photos)
SPARSIGHT_ASSET(page_charts)
