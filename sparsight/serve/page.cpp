#include "sparsight/serve/page.h"

#define SPARSIGHT_ASSET(name)                                                             \
  extern "C" const char sparsight_asset_##name##_begin[], sparsight_asset_##name##_end[]; \
  std::string_view sparsight::serve::assets::name() {                                     \
    return {sparsight_asset_##name##_begin, sparsight_asset_##name##_end};                \
  }

SPARSIGHT_ASSET(serve_page)
SPARSIGHT_ASSET(serve_style)
SPARSIGHT_ASSET(serve_script)
