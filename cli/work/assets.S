#include "sparsight/core/assets.inc"

ASSET(demo_config, .incbin "configs/demo.toml")
